"""Which process runs the cluster of a data directory.

The lock says whether one is alive, because the kernel drops it with the process; the state file says which. A process
id alone proves nothing, so it is kept together with the process's start time.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from podfit.cluster.errors import MachineError
from podfit.cluster.layout import DataDir
from podfit.net.files import write_whole
from podfit.net.processes import start_ticks


class RunningNode(msgspec.Struct, frozen=True):
    name: str
    kind: str  # real or simulated
    detail: str
    runtime_endpoint: str = ""
    cgroup_root: str = ""
    containerd_pid: int = 0


class UpState(msgspec.Struct, frozen=True):
    """What `up` wrote when it was ready, or (`ready` false) while it started."""

    pid: int
    start_ticks: int
    version: str
    started: str
    server: str = ""
    ready: bool = False
    nodes: tuple[RunningNode, ...] = ()
    feature_gates: str = ""
    kubeconfig: str = ""  # the file that the context was added to, or the standalone one
    context: str = ""
    external_runtime: str = ""  # the CRI socket that was named instead of a containerd of our own


class Process(msgspec.Struct, frozen=True):
    pid: int
    start_ticks: int

    @staticmethod
    def current() -> "Process":
        return Process(os.getpid(), start_ticks(os.getpid()) or 0)

    def alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks


def read_state(data: DataDir) -> UpState | None:
    """What the last `up` on this directory wrote; it may be long gone."""
    try:
        return msgspec.json.decode(data.state.read_bytes(), type=UpState)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise MachineError(f"cannot read {data.state}: {error}", fix=(f"remove it:  rm {data.state}",)) from error


def running(data: DataDir) -> UpState | None:
    """The state of the cluster that is running on this directory now."""
    state = read_state(data)
    return state if state and Process(state.pid, state.start_ticks).alive() and _locked(data) else None


def write_state(data: DataDir, state: UpState) -> None:
    write_whole(data.state, msgspec.json.encode(state))


def _locked(data: DataDir) -> bool:
    try:
        handle = os.open(data.lock, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextmanager
def exclusive(data: DataDir) -> Iterator[None]:
    """Hold the data directory; MachineError names the process that holds it already."""
    data.create()
    handle = os.open(data.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(data) from None
        yield
    finally:
        os.close(handle)


def _busy(data: DataDir) -> MachineError:
    state = read_state(data)
    who = f"podfit (pid {state.pid}, started {state.started})" if state else "another podfit command"
    return MachineError(
        f"{data.root} is in use by {who}",
        fix=(f"stop it:    podfit down --data {data.root}", "or choose another directory with --data"),
    )
