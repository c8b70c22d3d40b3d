"""tmpfs mounts of a pod's volumes, and whose their files are.

`TmpfsMounter` calls mount(2) through the C library: the standard library has no binding, and running mount(8) costs a
process per volume. `DirectoryMounter` is for nodes that may not mount, which are the simulated ones: there a volume in
memory is a directory like any other.
"""

import ctypes
import os
from pathlib import Path
from typing import Protocol

_MNT_DETACH = 2


class Mounter(Protocol):
    def tmpfs(self, path: Path, *, size: int | None) -> None:
        """Mount on an existing directory unless it is mounted already. `size` in bytes. Raises OSError."""

    def unmount_below(self, path: Path) -> None:
        """Unmount everything at or below `path`, deepest first."""

    def own(self, path: Path, user: int, group: int) -> None:
        """Give a file to a user and a group, -1 for the one that it has. Raises OSError."""


class DirectoryMounter:
    def tmpfs(self, path: Path, *, size: int | None) -> None:
        """The directory is used as it is."""

    def unmount_below(self, path: Path) -> None:
        """There is never anything mounted."""

    def own(self, path: Path, user: int, group: int) -> None:
        """No container will read it, so it stays with whoever simulates the node."""


class TmpfsMounter:
    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def tmpfs(self, path: Path, *, size: int | None) -> None:
        if path.is_mount():
            return
        options = b"mode=0777" + (f",size={size}".encode() if size else b"")
        self._check(self._libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, options), path)

    def unmount_below(self, path: Path) -> None:
        for point in sorted(mount_points(path), reverse=True):
            self._check(self._libc.umount2(os.fsencode(point), _MNT_DETACH), point)

    def own(self, path: Path, user: int, group: int) -> None:
        os.chown(path, user, group)

    def _check(self, result: int, path: Path) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))


def mount_points(path: Path) -> list[Path]:
    """At or below `path`. From /proc/self/mountinfo, whose fifth field is the mount point, blanks as octal escapes."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = Path(line.split(" ")[4].encode().decode("unicode_escape"))
        if point == path or path in point.parents:
            found.append(point)
    return found
