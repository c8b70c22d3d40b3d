"""Atomic file writes: a file is the old one or the new one, whole, whatever happens in between. And the removal of
directories that others have filled.

write_atomic    survives the machine losing power
write_whole     survives the process that wrote it; a fifth of the time, and a disk that others keep busy is not
                waited for
"""

import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_AT_ONCE = 1000
LARGEST_GIVEN = 8 << 20
"""Bytes of a kubeconfig, a certificate or a configuration: real ones have a few KiB, so this one is none."""


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600, keep_owner: bool = False) -> None:
    """Replace `path` durably: after the return the new content survives the machine losing power.

    The content goes to a neighbour that is renamed over `path`, so a reader never sees a half of it. Missing parent
    directories are made. With `keep_owner` a file that root writes stays its owner's. Raises OSError, and then leaves
    no neighbour behind.
    """
    _replace(path, data, mode, durable=True, keep_owner=keep_owner)
    sync_directory(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Writes as `write_atomic` does, for what is worth nothing once the machine has stopped: then it may be missing or
    damaged.

    On a full disk what is there is written over, which needs no room.
    """
    try:
        _replace(path, data, 0o600, durable=False)
    except OSError as error:
        if error.errno != errno.ENOSPC or not path.exists():
            raise
        with path.open("r+b") as file:
            file.write(data)
            file.truncate()


def _replace(path: Path, data: bytes, mode: int, *, durable: bool, keep_owner: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, neighbour = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if keep_owner and os.geteuid() == 0 and path.exists():
                os.fchown(file.fileno(), path.stat().st_uid, path.stat().st_gid)
            os.fchmod(file.fileno(), mode)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(neighbour, path)
    except BaseException:
        os.unlink(neighbour)
        raise


def sync_directory(path: Path) -> None:
    """Make creations, renames and deletions inside a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def one_at_a_time(directory: Path, *, shared: bool = False) -> Iterator[None]:
    """Whoever else asks for this directory waits, in this process or another; several may have it `shared`. Not to be
    nested; ends with the process.

    Raises OSError.
    """
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_given(path: Path) -> bytes:
    """A file that a user names. Raises OSError, also for one that has no end, such as a device, or is too large."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):  # a shell's `<(...)` is a FIFO
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        data = file.read(LARGEST_GIVEN + 1)
    if len(data) > LARGEST_GIVEN:
        raise OSError(errno.EFBIG, f"larger than {LARGEST_GIVEN >> 20} MiB", str(path))
    return data


def misread(error: Exception) -> str:
    """In one line, what a reader of a file made of it."""
    if isinstance(error, OSError):
        return f"cannot be read ({(error.strerror or str(error)).lower()})"
    return f"is not understood: {flat(error)}"


def flat(error: Exception) -> str:
    """An error's text in one line; one of YAML without the name of what it was read from, which is no file's."""
    return " ".join(re.sub(r'in "<(?:byte|unicode) string>", ', "at ", str(error)).split())


def remove_tree(path: Path) -> None:
    """Removes a tree of any depth, with two descriptors: whoever filled it may have made more levels than Python's own
    removal, which calls itself, can go down. Follows no link. Raises OSError, also at what is mounted below.

    Directories are moved up to the top before they are emptied, so one that fails half-way is flatter than it was.
    """
    top = os.open(path, _DIRECTORY)
    try:
        names = count()
        while children := _children(top):
            for child, is_directory in children:
                if is_directory:
                    _lift(top, child, names)
                    os.rmdir(child, dir_fd=top)
                else:
                    os.unlink(child, dir_fd=top)
    finally:
        os.close(top)
    path.rmdir()


def _lift(top: int, name: str, names: Iterator[int]) -> None:
    """What is in a directory of `top` is gone afterwards, or in `top`."""
    directory = os.open(name, _DIRECTORY, dir_fd=top)
    try:
        while children := _children(directory):
            for child, is_directory in children:
                if is_directory:
                    _move_up(directory, child, top, names)
                else:
                    os.unlink(child, dir_fd=directory)
    finally:
        os.close(directory)


def _move_up(directory: int, name: str, top: int, names: Iterator[int]) -> None:
    for number in names:
        try:
            os.rename(name, f".lifted-{number}", src_dir_fd=directory, dst_dir_fd=top)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return


def _children(directory: int) -> list[tuple[str, bool]]:
    """Some names of a directory, and whether each is a directory itself."""
    with os.scandir(directory) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, _AT_ONCE)]
