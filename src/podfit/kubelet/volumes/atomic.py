"""The atomic writer of ConfigMap, Secret, downward API and projected volumes: all files change at once.

    volume/..2026_11_21_03_55_07.123456/key     the content
    volume/..data -> ..2026_…                   replaced by one rename: readers see the old set or the new one
    volume/key -> ..data/key

The layout is upstream's, because programs watch `..data` to learn of changes.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

DATA = "..data"
MOST_LEVELS = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileOwner(NamedTuple):
    """User and group of a file; None leaves it with whoever writes it."""

    user: int | None
    group: int | None


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int = 0o644
    owner: FileOwner | None = field(default=None, compare=False)


Own = Callable[[int, int, int], None]
"""Gives an open file to a user and a group, -1 for the one that it has. Raises OSError."""


Payload = Mapping[str, File]
"""Relative paths and what is in them."""


def write_payload(volume: Path, payload: Payload, *, now: datetime, own: Own) -> bool:
    """Make the volume show exactly the payload. False when it did already. Raises OSError.

    Everything is done from the descriptor of the volume, and no link in it is followed: should a container have been
    able to change it, nothing outside of it is read or written.
    """
    _check(payload)
    root = os.open(volume, _DIRECTORY)
    try:
        current = _current(root)
        if current and _shows(root, current, payload):
            return False
        fresh = now.strftime("..%Y_%m_%d_%H_%M_%S.%f")
        _remove(root, fresh)
        _write(root, fresh, payload, own)
        _point(root, DATA, fresh)
        _link(root, {PurePosixPath(name).parts[0] for name in payload})
        if current and current != fresh:
            _remove(root, current)
        return True
    finally:
        os.close(root)


def _check(payload: Payload) -> None:
    """Upstream's rules for paths in a volume; the API server has them, too. Raises OSError."""
    for name in payload:
        parts = name.split("/")
        if not name or name.startswith(("/", "..")) or ".." in parts or "\0" in name or len(parts) > MOST_LEVELS:
            raise OSError(errno.EINVAL, "not a path inside of a volume", name)


def _current(root: int) -> str:
    """The directory that the volume shows; empty when it shows none that was made here."""
    try:
        target = os.readlink(DATA, dir_fd=root)
    except OSError:
        return ""
    return target if target.startswith("..") and target != ".." and "/" not in target else ""


def _shows(root: int, current: str, payload: Payload) -> bool:
    """Compares what is there; without pathlib, because every pod's volumes are compared once a minute."""
    try:
        top = os.open(current, _DIRECTORY, dir_fd=root)
    except OSError:
        return False
    try:
        return _count(top) == len(payload) and all(_same(top, name, file) for name, file in payload.items())
    except OSError:
        return False
    finally:
        os.close(top)


def _count(directory: int) -> int:
    """Files below; directories do not count."""
    count = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                count += 1
                continue
            below = os.open(entry.name, _DIRECTORY, dir_fd=directory)
            try:
                count += _count(below)
            finally:
                os.close(below)
    return count


def _same(top: int, name: str, file: File) -> bool:
    with _inside(top, name, make=False) as (directory, last):
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    with open(descriptor, "rb", buffering=0) as stream:
        found = os.fstat(descriptor)
        known = stat.S_ISREG(found.st_mode), found.st_mode & 0o7777, found.st_size
        return known == (True, file.mode, len(file.data)) and stream.read(len(file.data) + 1) == file.data


def _write(root: int, name: str, payload: Payload, own: Own) -> None:
    os.mkdir(name, 0o755, dir_fd=root)
    top = os.open(name, _DIRECTORY, dir_fd=root)
    try:
        os.fchmod(top, 0o755)
        for path, file in payload.items():
            with _inside(top, path, make=True) as (directory, last):
                descriptor = os.open(last, _NEW, 0o600, dir_fd=directory)
            with open(descriptor, "wb") as stream:
                stream.write(file.data)
                stream.flush()
                os.fchmod(descriptor, file.mode)
                if file.owner is not None:
                    own(descriptor, *(-1 if part is None else part for part in file.owner))
    finally:
        os.close(top)


@contextmanager
def _inside(top: int, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The directory that holds a path, and the last name."""
    *above, last = path.split("/")
    directory = os.dup(top)
    try:
        for name in above:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=directory)
            below = os.open(name, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = below
        yield directory, last
    finally:
        os.close(directory)


def _remove(root: int, name: str) -> None:
    """A directory with all in it, or whatever else is in its place."""
    try:
        if stat.S_ISDIR(os.lstat(name, dir_fd=root).st_mode):
            shutil.rmtree(name, dir_fd=root)
        else:
            os.unlink(name, dir_fd=root)
    except FileNotFoundError:
        return


def _point(root: int, name: str, target: str) -> None:
    neighbour = f"{DATA}_tmp"
    _remove(root, neighbour)
    os.symlink(target, neighbour, dir_fd=root)
    if not _is_link(root, name):
        _remove(root, name)
    os.rename(neighbour, name, src_dir_fd=root, dst_dir_fd=root)


def _link(root: int, names: set[str]) -> None:
    for name in names:
        if not _is_link(root, name):
            _remove(root, name)
            os.symlink(f"{DATA}/{name}", name, dir_fd=root)
    with os.scandir(root) as entries:
        old = [
            entry.name
            for entry in entries
            if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in names
        ]
    for name in old:
        os.unlink(name, dir_fd=root)


def _is_link(root: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=root).st_mode)
    except FileNotFoundError:
        return False
