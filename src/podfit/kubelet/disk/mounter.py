"""Mounts and ownership of a pod's volumes and sub-paths.

`TmpfsMounter` calls mount(2) through the C library: the standard library has no binding, and running mount(8) costs a
process per volume. `DirectoryMounter` is for nodes that may not mount, which are the simulated ones: there a volume in
memory is a directory like any other.
"""

import ctypes
import errno
import os
import re
from pathlib import Path
from typing import Protocol

from podfit.kubelet.disk.safe_paths import reachable

_MNT_DETACH, _UMOUNT_NOFOLLOW, _MS_BIND = 2, 8, 4096
_MOST_MOUNTS = 100  # on one place
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mounter(Protocol):
    def tmpfs(self, path: Path, *, size: int | None) -> None:
        """Mount on an existing directory unless it is mounted already. `size` in bytes. Raises OSError."""

    def unmount_below(self, path: Path) -> None:
        """Unmount everything at or below `path`, deepest first."""

    @property
    def binds(self) -> bool:
        """Whether `bind` does anything. Where it does not, no container will ever reach the files."""

    def bind(self, descriptor: int, target: Path) -> None:
        """Make what the descriptor is open on appear at an existing file or directory. Raises OSError."""

    def unmount(self, target: Path) -> None:
        """Undo every mount exactly there; fine if there is none. Raises OSError."""

    def own(self, descriptor: int, user: int, group: int) -> None:
        """Give an open file (or path) to a user and a group, -1 for the one that it has. Raises OSError."""


class DirectoryMounter:
    def tmpfs(self, path: Path, *, size: int | None) -> None:
        """The directory is used as it is."""

    def unmount_below(self, path: Path) -> None:
        """There is never anything mounted."""

    @property
    def binds(self) -> bool:
        return False

    def bind(self, descriptor: int, target: Path) -> None:
        """What runs here reads no files."""

    def unmount(self, target: Path) -> None:
        """There is never anything mounted."""

    def own(self, descriptor: int, user: int, group: int) -> None:
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
            self._check(self._libc.umount2(os.fsencode(point), _MNT_DETACH | _UMOUNT_NOFOLLOW), point)

    @property
    def binds(self) -> bool:
        return True

    def bind(self, descriptor: int, target: Path) -> None:
        source = reachable(descriptor).encode()
        self._check(self._libc.mount(source, os.fsencode(target), None, _MS_BIND, None), target)

    def unmount(self, target: Path) -> None:
        for _ in range(_MOST_MOUNTS):
            if self._libc.umount2(os.fsencode(target), _MNT_DETACH | _UMOUNT_NOFOLLOW) == 0:
                continue
            if ctypes.get_errno() not in (errno.EINVAL, errno.ENOENT):
                self._check(-1, target)
            return
        raise OSError(errno.EBUSY, f"more than {_MOST_MOUNTS} mounts on one place", str(target))

    def own(self, descriptor: int, user: int, group: int) -> None:
        os.chown(reachable(descriptor), user, group)  # it may be open as a path only

    def _check(self, result: int, path: Path) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))


def mount_points(path: Path) -> list[Path]:
    """At or below `path`. From /proc/self/mountinfo, whose fifth field is the mount point, blanks as octal escapes."""
    found = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        text = _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), line.split(b" ")[4])
        point = Path(os.fsdecode(text))
        if point == path or path in point.parents:
            found.append(point)
    return found
