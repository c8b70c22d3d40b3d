"""A cluster under attack, and what the attack cost it.

    with bounded(tmp_path) as victim:
        victim.measure("10,000 inserts", lambda: victim.ask("PATCH", path, body, content_type=…)).check()

`bounded` runs `podfit up` in a process of its own, with limited memory. `measure` makes the attack and returns the
`Figures`: the longest turn of the server's event loop in CPU (`support.turns`), how long a second client waited
meanwhile, how far the process grew during it and what it still held after it.
"""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podfit.client.kubeconfig import Access, load
from support.bounded_server import CLOCK, CLOCK_AT, HANGING, RECORD, SIZE, WHERE
from support.eventually import eventually
from support.turns import TURN_MS

PEAK_MIB, KEPT_MIB = 256.0, 64.0
MEMORY = 4 << 30
START_SECONDS, ANSWER_SECONDS, RELEASE_SECONDS = 60.0, 120.0, 60.0
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Figures:
    attack: str
    turn_ms: float
    p99_ms: float
    worst_ms: float
    peak_mib: float
    kept_mib: float
    requests: int
    where: str = field(default="", repr=False)

    def __str__(self) -> str:
        return (
            f"{self.attack}: {self.requests} requests, longest turn {self.turn_ms:.0f} ms, second client p99 "
            f"{self.p99_ms:.0f} ms (worst {self.worst_ms:.0f}), "
            f"grew {self.peak_mib:.0f} MiB, kept {self.kept_mib:.0f} MiB"
        )

    def check(self, *, turn_ms: float = TURN_MS, peak_mib: float = PEAK_MIB, kept_mib: float = KEPT_MIB) -> "Figures":
        assert self.turn_ms <= turn_ms, f"{self}\n{self.where}"
        assert self.peak_mib <= peak_mib, str(self)
        assert self.kept_mib <= kept_mib, str(self)
        return self


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Victim:
    """A running cluster to attack. One thread asks at a time, unless `ask` is given a fresh connection."""

    root: Path
    process: "subprocess.Popen[bytes]"
    shared: Path
    neighbour: "subprocess.Popen[str]"
    port: int
    files: tuple[str, str, str]
    """The authority, the administrator's certificate and key."""
    requests: int = 0
    _round: int = 0

    # ------------------------------------------------------------------ asking

    def tls(self, *, anonymous: bool = False) -> ssl.SSLContext:
        authority, certificate, key = self.files
        context = ssl.create_default_context(cafile=authority)
        if not anonymous:
            context.load_cert_chain(certificate, key)
        return context

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Any = None,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        anonymous: bool = False,
    ) -> Answer:
        """One request on a connection of its own; what is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.tls(anonymous=anonymous), timeout=ANSWER_SECONDS
        )
        self.requests += 1
        try:
            with suppress(BrokenPipeError):  # refused before all of it was sent; the answer says why
                connection.request(method, path, data, {"Content-Type": content_type, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()

    def raw(self, *parts: bytes, anonymous: bool = True, seconds: float = 10.0) -> bytes:
        """Bytes as they are, each part written by itself; what comes back until the server closes or is silent."""
        self.requests += 1
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=seconds)
        with self.tls(anonymous=anonymous).wrap_socket(plain, server_hostname="127.0.0.1") as sock:
            heard = b""
            with suppress(OSError):
                for part in parts:
                    sock.sendall(part)
                while chunk := sock.recv(1 << 16):
                    heard += chunk
            return heard

    def set_clock(self, seconds: float) -> None:
        """Its time of day is this one and so many seconds."""
        with self.shared.open("r+b") as file:
            file.seek(CLOCK_AT)
            file.write(CLOCK.pack(seconds))

    @contextmanager
    def hanging_disk(self) -> Iterator[None]:
        """Its kubelet's writes wait until the end."""
        sign = self.shared.with_name(self.shared.name + HANGING)
        sign.touch()
        try:
            yield
        finally:
            sign.unlink()

    # ------------------------------------------------------------------ measuring

    def measure(
        self, attack: str, work: Callable[[], object], *, settle: float = 0.0, stored_mib: float = 0.0
    ) -> Figures:
        """Attack, and `settle` seconds later (for what the attack has others do) say what it cost. What it is meant to
        store is not waited for to go."""
        self._begin()
        self.requests, before = 0, self.rss_mib()
        with self._peak() as peak:
            work()
            if settle:
                time.sleep(settle)
            self.ask("GET", "/readyz")
        turn = self._turn()
        p99, worst, _ = self._neighbour()
        kept = self._kept(before, KEPT_MIB + stored_mib)
        figures = Figures(attack, turn, p99, worst, max(0.0, peak[0] - before), kept, self.requests - 1, self.where())
        print(figures)  # noqa: T201  (pytest -s, and what a failure shows)
        return figures

    def rss_mib(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def where(self) -> str:
        """Where the loop's thread was in the longest turn."""
        return self.shared.read_bytes()[WHERE:].rstrip(b"\0").decode(errors="replace")

    def _begin(self) -> None:
        self._round += 1
        with self.shared.open("r+b") as file:
            file.write(RECORD.pack(self._round, 0, 0.0, 0)[:8])

        def begun() -> bool:
            assert self.process.poll() is None, self.log()
            return bool(self._record()[1] == self._round)

        eventually(begun, within=ANSWER_SECONDS, what="the event loop turns", told=self.where, every=0.005)
        self._neighbour()

    def _turn(self) -> float:
        """The worst in milliseconds, the last one counted: after it was looked twice, once from its beginning."""
        looks = self._record()[3]
        eventually(
            self._record,
            lambda record: record[3] > looks + 1,
            within=ANSWER_SECONDS,
            what="the event loop turns",
            every=0.002,
        )
        return 1000 * float(self._record()[2])

    def _record(self) -> Any:
        return RECORD.unpack(self.shared.read_bytes()[: RECORD.size])

    def _neighbour(self) -> tuple[float, float, int]:
        assert self.neighbour.stdin
        assert self.neighbour.stdout
        self.neighbour.stdin.write("\n")
        self.neighbour.stdin.flush()
        p99, worst, count = json.loads(self.neighbour.stdout.readline())
        return p99, worst, count

    def _kept(self, before: float, most: float) -> float:
        """How much larger the process is, as soon as it is under the bound, after a minute at the latest."""
        end = time.monotonic() + RELEASE_SECONDS
        while (kept := self.rss_mib() - before) > most and time.monotonic() < end:
            time.sleep(0.25)
        return max(0.0, kept)

    @contextmanager
    def _peak(self) -> Iterator[list[float]]:
        """The largest that the process is meanwhile."""
        peak, done = [self.rss_mib()], threading.Event()

        def look() -> None:
            while not done.wait(0.01) and self.process.poll() is None:
                with suppress(OSError, IndexError):
                    peak[0] = max(peak[0], self.rss_mib())

        looking = threading.Thread(target=look)
        looking.start()
        try:
            yield peak
        finally:
            done.set()
            looking.join()
            assert self.process.poll() is None, f"the server has ended ({self.process.returncode}): {self.log()}"

    def log(self) -> str:
        return (self.root / "server.log").read_text()[-3000:]


@contextmanager
def bounded(root: Path, *options: str, node: str = "none", memory: int = MEMORY) -> Iterator[Victim]:
    """A cluster in `root`, ready. `memory` is what its process may map (RLIMIT_AS), so that a failure stays there."""
    data, shared = root / "data", root / "turns"
    root.mkdir(parents=True, exist_ok=True)
    shared.write_bytes(b"\0" * SIZE)
    ready, tell = os.pipe()
    command = [
        sys.executable,
        str(HERE / "bounded_server.py"),
        str(shared),
        str(memory),
        "up",
        "--data",
        str(data),
        "--kubeconfig",
        str(root / "user.kubeconfig"),
        "--port",
        "0",
        "--node",
        node,
        "--eviction-hard",
        "",
        *options,
    ]
    with (root / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(tell,),
            env=os.environ | {"PODFIT_READY_FD": str(tell)},
            process_group=0,
        )
    os.close(tell)
    neighbour = None
    try:
        with os.fdopen(ready, "rb") as pipe:
            pipe.read()  # closed when the cluster is ready, or has ended
        assert process.poll() is None, (root / "server.log").read_text()
        access = load([data / "admin.kubeconfig"])
        files = _pem_files(root, access)
        port = int(access.server.rpartition(":")[2])
        command = [sys.executable, str(HERE / "bounded_neighbour.py"), str(port), *files, "/readyz"]
        neighbour = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0)
        yield Victim(root, process, shared, neighbour, port, files)
    finally:
        if neighbour is not None:
            neighbour.kill()
            neighbour.communicate()
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _pem_files(root: Path, access: Access) -> tuple[str, str, str]:
    parts = {"ca.pem": access.authorities, "admin.pem": access.certificate, "admin.key": access.key}
    for name, pem in parts.items():
        (root / name).write_bytes(pem or b"")
    ca, certificate, key = (str(root / name) for name in parts)
    return ca, certificate, key
