"""Safe path resolution inside volumes: a container may swap links, so each component is opened from a descriptor.

A path that is checked as text and used as text later may lead somewhere else by then (CVE-2017-1002101,
CVE-2021-25741). Here each component is opened with O_NOFOLLOW from the descriptor of its parent. A link is read from
its own descriptor and followed here, component by component, and never above the root. What is handed on is the
descriptor of what was found.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_LINKS = 40
MOST_LEVELS = 256  # each holds a descriptor open
OWN_LEVELS = 3  # pod, container and file of a log: what is above them only the kubelet makes
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Outside(Exception):
    """The path leads out of its root."""


@contextmanager
def opened(root: Path, path: str, *, make: int | None = None) -> Iterator[int]:
    """A descriptor (O_PATH) of `path` below `root`. Links inside the root are followed, as far as they stay in it.

    Missing directories are made with the mode `make`. Raises Outside, and OSError such as FileNotFoundError.
    """
    walk = _Walk(root, make)
    try:
        walk.go(path)
        yield walk.here
    finally:
        walk.close()


class _Walk:
    """The descriptors from the root to where the walk is."""

    def __init__(self, root: Path, make: int | None) -> None:
        self._descriptors = [os.open(root, os.O_PATH | os.O_CLOEXEC)]
        self._make, self._links = make, 0

    @property
    def here(self) -> int:
        return self._descriptors[-1]

    def go(self, path: str) -> None:
        if path.startswith("/"):
            raise Outside(path)
        left = deque(path.split("/"))
        while left:
            name = left.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                self._up(path)
                continue
            found = self._open(name)
            if not stat.S_ISLNK(os.fstat(found).st_mode):
                self._down(found, path)
                continue
            try:
                left.extendleft(reversed(self._target(found, path).split("/")))
            finally:
                os.close(found)

    def _up(self, path: str) -> None:
        if len(self._descriptors) == 1:
            raise Outside(path)
        os.close(self._descriptors.pop())

    def _down(self, descriptor: int, path: str) -> None:
        self._descriptors.append(descriptor)
        if len(self._descriptors) > MOST_LEVELS:
            raise OSError(errno.ENAMETOOLONG, f"more than {MOST_LEVELS} directories deep", path)

    def _open(self, name: str) -> int:
        try:
            return os.open(name, _LOOK, dir_fd=self.here)
        except FileNotFoundError:
            if self._make is None:
                raise
        try:
            os.mkdir(name, 0o700, dir_fd=self.here)
        except FileExistsError:
            return os.open(name, _LOOK, dir_fd=self.here)
        made = os.open(name, _LOOK, dir_fd=self.here)
        if stat.S_ISDIR(os.fstat(made).st_mode):
            os.chmod(reachable(made), self._make)
        return made

    def _target(self, link: int, path: str) -> str:
        """Where a link points, seen from here. One that is absolute may name a place in the root by its whole path."""
        self._links += 1
        if self._links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink("", dir_fd=link)
        if not target.startswith("/"):
            return target
        root = os.readlink(reachable(self._descriptors[0]))
        if target != root and not target.startswith(root.rstrip("/") + "/"):
            raise Outside(path)
        while len(self._descriptors) > 1:
            os.close(self._descriptors.pop())
        return target[len(root) :]

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


def reachable(descriptor: int) -> str:
    """A path that means what the descriptor is open on, whatever its own path leads to by now."""
    return f"/proc/self/fd/{descriptor}"


@contextmanager
def own_directory(path: Path) -> Iterator[int]:
    """A descriptor (O_PATH) of the directory that a file is in, which is no link, and neither is the one above. Raises
    OSError.
    """
    descriptor = _without_links(path.parent, OWN_LEVELS - 1)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent))
        yield descriptor
    finally:
        os.close(descriptor)


def _without_links(path: Path, levels: int) -> int:
    """A descriptor (O_PATH) of a path whose last components, so many of them, are opened as they are: a link among
    them is not followed. Raises OSError.
    """
    above = path.parents[levels - 1] if len(path.parents) >= levels else path.anchor or "."
    descriptor = os.open(above, os.O_PATH | os.O_CLOEXEC)
    try:
        for name in path.parts[-levels:]:
            if name == path.anchor:
                continue
            below = os.open(name, _LOOK, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_regular(path: Path) -> int:
    """Open a file for reading whose last OWN_LEVELS components are no links. Anything else than a regular file is
    refused without opening it: a FIFO would block, a device may do anything. Raises OSError.
    """
    descriptor = _without_links(path, OWN_LEVELS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.open(reachable(descriptor), os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    finally:
        os.close(descriptor)


def make_directory(root: Path, path: str, *, mode: int = 0o755) -> Path:
    """Make a directory below one of the kubelet's own, with those above it; links out of it are refused.

    Raises Outside, OSError.
    """
    with opened(root, path, make=mode) as descriptor:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root / path))
    return root / path


def component(name: str) -> str:
    """A name that is one component of a path. Raises Outside."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Outside(name)
    return name
