"""Every test, in five sessions of pytest beside each other: most wait for the machine rather than use it.

    node      containerd, cgroups and iptables: two at a time, each as if the machine were its own (scripts/apart),
              told as it goes
    guest     the same on cgroup v2, by a kernel of its own
    servers   kubectl and etcd: one test at a time, because tests share a cluster
    parts     what needs no machine, with what the others leave of it: the folders of FIRST
    rest      and all others; each reads half of the tests, where each worker of xdist would read all of them

The last four are told when `node` has ended. Ctrl-C ends all of them, and so does the end of this process, whatever
it was. Nothing is run a second time: a test that fails once is a failure. The exit code is 0 when each session's was;
otherwise the folder with the tests' files stays.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

FLUSH_SECONDS = 5
PATIENCE = "4"
"""So many times as long as it says a test may take here, and each of its waits (tests/support/eventually.py)."""


class Session(NamedTuple):
    name: str
    marks: str
    nice: int = 0
    options: tuple[str, ...] = ()


def two_apart() -> tuple[str, ...]:
    """Options for two workers, each apart. Nothing without root, where the tests skip, or on a host of cgroup v2."""
    if os.geteuid() != 0 or Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return ()
    # By file, in the files' order: tests of a file share a cluster.
    return "--dist=loadfile", "--no-loadscope-reorder", f"--tx=2*popen//python=scripts/apart {sys.executable}"


FIRST = tuple(f"tests/{folder}" for folder in ("apiserver", "cli", "controllers", "kubelet", "vpa"))
"""Half of the CPU that the tests without a machine take."""
HALF_OF_CORES = (os.cpu_count() or 1) // 2
NO_MACHINE = Session(
    "parts",
    "not (node or guest or kubectl or etcd or campaign)",
    nice=19,
    options=("-n", str(HALF_OF_CORES)) if HALF_OF_CORES > 1 else (),
)

SESSIONS = (
    Session("node", "node and not (guest or campaign)", options=two_apart()),
    Session("guest", "guest and not campaign"),
    Session("servers", "(kubectl or etcd) and not (node or guest or campaign)", nice=10),
    NO_MACHINE._replace(options=(*NO_MACHINE.options, *FIRST)),
    NO_MACHINE._replace(name="rest", options=(*NO_MACHINE.options, *(f"--ignore={folder}" for folder in FIRST))),
)


class Run:
    """One session: what it says, shown at once or kept until it is asked for."""

    def __init__(self, session: Session, files: Path, *, at_once: bool) -> None:
        self.session, self.files, self.at_once = session, files, at_once
        self.log = Path(f"{files}.log")
        self.code, self.seconds, self.said = -1, 0.0, b""

    async def go(self) -> None:
        begun = time.monotonic()
        environment = os.environ | {"COLUMNS": str(shutil.get_terminal_size().columns)}
        environment["PODFIT_TESTS_FILES"] = str(self.files)
        environment["PODFIT_TESTS_PATIENCE"] = PATIENCE
        if self.session.name != "node":
            environment["PODFIT_TESTS_BESIDE_NODE"] = "1"  # which alone counts what is left on the machine
        color = "--color=yes" if sys.stdout.isatty() else "--color=no"
        # In a group of its own a Ctrl-C does not reach it, so that it is interrupted once, and its processes by it.
        process = await asyncio.create_subprocess_exec(
            "setpriv",
            "--pdeathsig",
            "INT",
            "nice",
            "-n",
            str(self.session.nice),
            sys.executable,
            "-m",
            "pytest",
            color,
            "-m",
            self.session.marks,
            "--basetemp",
            str(self.files),
            "-o",
            f"cache_dir={self.files}.cache",
            *self.session.options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            process_group=0,
        )
        assert process.stdout is not None
        reading = asyncio.create_task(self._listen(process.stdout))
        try:
            self.code = await process.wait()
        except asyncio.CancelledError:
            process.send_signal(signal.SIGINT)
            self.code = await process.wait()
        self.seconds = time.monotonic() - begun
        await asyncio.wait([reading], timeout=FLUSH_SECONDS)  # what it left behind may hold its output open

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while said := await stream.read(1 << 16):
            self.said += said
            with self.log.open("ab") as log:
                log.write(said)
            if self.at_once:
                show(said)

    def last_line(self) -> str:
        lines = self.said.decode(errors="replace").splitlines() or ["said nothing"]
        return lines[-1].strip("= ")


def show(said: bytes) -> None:
    sys.stdout.buffer.write(said)
    sys.stdout.buffer.flush()


async def main() -> int:
    files = Path(tempfile.mkdtemp(prefix="podfit-test."))
    runs = [Run(session, files / session.name, at_once=number == 0) for number, session in enumerate(SESSIONS)]
    ends = [asyncio.create_task(run.go()) for run in runs]
    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    try:
        for run, end in zip(runs, ends, strict=True):
            await asyncio.shield(end)
            tell(run)
    except asyncio.CancelledError:
        for end in ends:
            end.cancel()
        await asyncio.wait(ends)
        for run in runs[1:]:
            tell(run)
        return 130
    show(b"\n")
    for run in runs:
        ended = "" if run.code == 0 else f"exit code {run.code}: "
        show(f"{run.session.name:9} {run.seconds:4.0f} s   {ended}{run.last_line()}\n".encode())
    if any(run.code for run in runs):
        show(f"the tests' files are in {files}\n".encode())
        return 1
    shutil.rmtree(files)
    return 0


def tell(run: Run) -> None:
    if not run.at_once:
        show(f"\n{run.session.name}: {run.session.marks}\n".encode() + run.said)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
