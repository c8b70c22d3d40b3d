"""The process that runs the cluster of a data directory, by its lock file.

The lock says whether one is alive, because the kernel drops it with the process; the state file says which. A process
id alone proves nothing, so it is kept together with the process's start time.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from podfit import __version__
from podfit.core.errors import plainly
from podfit.net.files import write_whole
from podfit.net.processes import start_ticks
from podfit.process.data.data_dir import DataDir, unusable
from podfit.process.errors import MachineError, reason


class RunningNode(msgspec.Struct, frozen=True):
    name: str
    kind: str  # real or simulated
    detail: str
    runtime_endpoint: str = ""
    cgroup_root: str = ""
    shutdown_seconds: int = 0  # that its pods have to end
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
    joined: str = ""  # the node of `podfit kubelet`, whose kubeconfig this is: it may read what is its own
    external_runtime: str = ""  # the CRI socket that was named instead of a containerd of our own


class Process(msgspec.Struct, frozen=True):
    pid: int
    start_ticks: int

    @staticmethod
    def current() -> "Process":
        return Process(os.getpid(), start_ticks(os.getpid()) or 0)

    def alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks


class Unrecorded(MachineError):
    """A cluster runs, but its state file is missing or damaged."""

    def __init__(self, data: DataDir, pid: int) -> None:
        super().__init__(
            f"a cluster runs on {data.root} (podfit, pid {pid}), but {data.state} is missing or damaged",
            fix=(f"stop it:  podfit down --data {data.root}",),
        )
        self.process = Process(pid, start_ticks(pid) or 0)


def read_state(data: DataDir) -> UpState | None:
    """What the last `up` on this directory wrote; it may be long gone. MachineError when it cannot be read."""
    try:
        return msgspec.json.decode(data.state.read_bytes(), type=UpState)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(data, error) from error
    except msgspec.DecodeError as error:
        why = f"{data.state} is damaged: {plainly(error, about=str(data.state))}"
        raise MachineError(why, fix=(f"no cluster runs there; remove the file:  rm {data.state}",)) from error


def running(data: DataDir) -> UpState | None:
    """The state of the cluster that is running on this directory now. The lock says whether one is: a state file can
    be lost. Raises MachineError when that cannot be found out, Unrecorded when there is no telling more about it."""
    if not _locked(data):
        return None
    try:
        state = read_state(data)
    except MachineError as error:
        if isinstance(error.__cause__, OSError):
            raise
        state = None
    if state and Process(state.pid, state.start_ticks).alive():
        return state
    pid = lock_holder(data)
    if pid is not None and _is_cluster(pid):
        raise Unrecorded(data, pid)
    return None


def record_this_process(
    data: DataDir,
    *,
    started: str,
    server: str,
    ready: bool,
    nodes: tuple[RunningNode, ...],
    kubeconfig: Path,
    context: str = "",
    joined: str = "",
    external_runtime: str = "",
) -> None:
    """Write down that this process runs the cluster, or the node, of the directory. See UpState for what is told."""
    me = Process.current()
    state = UpState(
        pid=me.pid,
        start_ticks=me.start_ticks,
        version=__version__,
        started=started,
        server=server,
        ready=ready,
        nodes=nodes,
        kubeconfig=str(kubeconfig),
        context=context,
        joined=joined,
        external_runtime=external_runtime,
    )
    write_state(data, state)


def write_state(data: DataDir, state: UpState) -> None:
    write_whole(data.state, msgspec.json.encode(state))


def lock_holder(data: DataDir) -> int | None:
    """The process that holds the lock, as the kernel tells; None when it does not tell."""
    try:
        inode = data.lock.stat().st_ino
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in locks:  # 1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF
        match line.split():
            case [_, "FLOCK", _, "WRITE", pid, place, *_] if place.endswith(f":{inode}") and int(pid) > 0:
                return int(pid)
    return None


def _is_cluster(pid: int) -> bool:
    """Rather than another command, which holds the directory for a moment."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(verb in words for verb in (b"up", b"apiserver", b"kubelet"))


def _locked(data: DataDir) -> bool:
    try:
        handle = os.open(data.lock, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(data, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _unreadable(data: DataDir, error: OSError) -> MachineError:
    """Whether a cluster runs there cannot be said."""
    what = f"{data.root} cannot be used: {error.filename}: {reason(error)}"
    owner = (f"ask as the user whose cluster it is:  sudo podfit status --data {data.root}",)
    return MachineError(what, fix=owner if isinstance(error, PermissionError) else ())


@contextmanager
def exclusive(data: DataDir) -> Iterator[None]:
    """Hold the data directory; MachineError names the process that holds it already."""
    data.create()
    try:
        handle = os.open(data.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(data, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(data) from None
        yield
    finally:
        os.close(handle)


def _busy(data: DataDir) -> MachineError:
    try:
        state = read_state(data)
    except MachineError:
        state = None
    pid = lock_holder(data)
    other = f"another podfit command (pid {pid})" if pid else "another podfit command"
    who = f"podfit (pid {state.pid}, started {state.started})" if state and state.pid == pid else other
    return MachineError(
        f"{data.root} is in use by {who}",
        fix=(f"stop it:    {data.command('down')}", "or choose another directory with --data"),
    )
