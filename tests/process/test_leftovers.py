"""What of a cluster is still on the machine is found by its data directory, and only that."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podfit.kubelet.disk.mounter import TmpfsMounter
from podfit.kubelet.runtime.containerd import Places
from podfit.process.data.data_dir import DataDir
from podfit.process.detach import not_started
from podfit.process.errors import ClusterError
from podfit.process.node.leftovers import LeftBehind, Leftovers, Traces, counted
from podfit.process.node.runtime import cgroup_layout
from support.clock import FakeClock

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="not root")
SLEEP = "import sys, time; print(1, flush=True); time.sleep(60)"


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    found = DataDir.at(tmp_path / "data")
    found.create()
    return found


@pytest.fixture
def shim(data: DataDir, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like one of containerd's, on this directory's socket."""
    program = tmp_path / "containerd-shim-runc-v2"
    program.symlink_to(sys.executable)
    command = [str(program), "-c", SLEEP, "-address", str(Places(data.containerd).socket)]
    with subprocess.Popen(command, executable=sys.executable, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        yield running
        running.kill()


def test_nothing_is_left_where_nothing_was(data: DataDir) -> None:
    assert Traces(data).look() == Leftovers()


def test_processes_are_known_by_their_socket(data: DataDir, shim: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (line,) = Traces(data).look().processes
    assert line.startswith(f"{shim.pid} ")
    assert not Traces(DataDir.at(tmp_path / "other")).look()


@needs_root
def test_mounts_below_the_directory_are_ours_and_the_directory_itself_may_be_one(data: DataDir) -> None:
    mounter = TmpfsMounter()
    mounter.tmpfs(data.root, size=None)
    try:
        assert not Traces(data).look()
        volume = data.kubelet("n1") / "a volume"
        volume.mkdir(parents=True)
        mounter.tmpfs(volume, size=None)
        assert Traces(data).look() == Leftovers(mounts=(str(volume),))
    finally:
        mounter.unmount_below(data.root)


@needs_root
def test_cgroups_are_ours_by_their_prefix_and_with_them_what_runs_in_them(data: DataDir) -> None:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    where = next(Path(point) for _, point, kind, *_ in mounts if kind in ("cgroup", "cgroup2"))
    group = where / cgroup_layout(data).prefix.strip("/") / "pod"
    group.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE) as running:
        try:
            (group / "cgroup.procs").write_text(str(running.pid))
            left = Traces(data).look()
        finally:
            running.kill()
            running.wait()
            group.rmdir()
            group.parent.rmdir()
    assert [line.split()[0] for line in left.processes] == [str(running.pid)]
    assert left.cgroups == (str(group.parent),)


async def test_what_stays_is_named_and_is_an_error(data: DataDir, shim: subprocess.Popen[bytes]) -> None:
    clock = FakeClock()
    with pytest.raises(LeftBehind) as left:
        await _with_time(clock, Traces(data))
    assert isinstance(left.value, ClusterError)
    assert left.value.exit_code == 1
    assert left.value.evidence[0].startswith(f"processes: {shim.pid} ")
    shim.kill()
    shim.wait()
    await Traces(data).verify(clock)


async def _with_time(clock: FakeClock, traces: Traces) -> None:
    verifying = asyncio.create_task(traces.verify(clock))
    await clock.advance(10)
    await verifying


def test_many_of_a_kind_are_counted_by_their_names() -> None:
    processes = [f"processes: {9000 + number} /bin/sleep 3" for number in range(12)]
    told = counted([*processes, "processes: 1 sh -c x", "mounts: /a", *(f"cgroups: /{at}" for at in range(5))])
    assert told == ("processes: 13: 12 sleep, 1 sh", "mounts: /a", "cgroups: 5: /0, /1, /2 and 2 more")


def test_a_start_that_failed_is_told_in_one_error() -> None:
    failure = not_started(["error: port 6443 is taken", "  by pid 7", "  see:  podfit status"], 3)
    assert failure.message == "the cluster did not start: port 6443 is taken"
    assert failure.evidence == ("by pid 7", "see:  podfit status")
    assert not_started(["Traceback", "boom"], 1).evidence == ("Traceback", "boom")
