"""Reading and writing the kernel's cgroup files, with its refusals as typed errors.

Writes go out unbuffered in one system call: a buffered file would report EBUSY or EINVAL only when it is closed, or
never.
"""

import errno
import os
import signal
from contextlib import suppress
from pathlib import Path

from podfit.kubelet.cgroup.protocol import Busy, CgroupError, Invalid, Missing, PartlyDone

PIECE = 1 << 16
_KINDS = {
    errno.EBUSY: Busy,
    errno.EINVAL: Invalid,
    errno.ERANGE: Invalid,
    errno.ENOENT: Missing,
    errno.ENODEV: Missing,
    errno.EAGAIN: PartlyDone,
}


def failed(action: str, error: OSError) -> CgroupError:
    kind = _KINDS.get(error.errno or 0, CgroupError)
    return kind(f"{action}: {error.strerror}")


def write(path: Path | str, value: str | int) -> None:
    text = str(value)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)
    except OSError as error:
        raise failed(f"writing {text!r} to {path}", error) from error


def read(path: Path | str) -> str:
    """Without a file object, which costs more than the reading; the kernel may give a long file in pieces."""
    text = b""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while piece := os.read(handle, PIECE):
                text += piece
        finally:
            os.close(handle)
    except OSError as error:
        raise failed(f"reading {path}", error) from error
    return text.decode().strip()


def read_int(path: Path | str) -> int:
    return int(read(path))


def processes(directory: Path | str) -> tuple[int, ...]:
    return tuple(int(line) for line in read(f"{directory}/cgroup.procs").split())


def kill_tree(*directories: Path) -> tuple[int, ...]:
    """Send SIGKILL to the processes of these cgroups and of all below. Returns their pids. A process of a PID namespace
    that this one cannot see, which the kernel shows as 0, is left. What is forked meanwhile is found by the next call.
    Raises CgroupError."""
    found: set[int] = set()
    for directory in directories:
        for parent, _, _ in os.walk(directory):
            with suppress(Missing):  # removed since
                found.update(processes(parent))
    killed = []
    for pid in sorted(found - {0}):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # ended since
            continue
        except OSError as error:
            raise failed(f"ending process {pid}", error) from error
        killed.append(pid)
    return tuple(killed)


def remove_tree(directory: Path) -> None:
    """rmdir with everything below, deepest first; a cgroup's files are not files to remove."""
    if not directory.is_dir():
        return
    for child in sorted(directory.iterdir()):
        if child.is_dir():
            remove_tree(child)
    try:
        directory.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        raise failed(f"removing {directory}", error) from error
