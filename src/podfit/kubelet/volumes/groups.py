"""fsGroup: the files of a pod's own volumes belong to a group, as upstream's.

A volume that the kubelet makes is empty when it is given to the group. A claimed one has files of earlier pods: they
get the group, and it may read and write them, each time that a pod begins (Always), or only if the volume itself is
not the group's (OnRootMismatch). Files that the kubelet writes are written with their group; what containers create
gets it by the set-group-id bit. hostPath volumes are left alone.
"""

import os
import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from podfit.kubelet.disk.safe_paths import reachable
from podfit.kubelet.disk.walk import OPEN, Entry, below
from podfit.kubelet.volumes.atomic import File, FileOwner, Own

_READ = 0o440
_SHARED = 0o2777
_FILE_OF_GROUP, _DIRECTORY_OF_GROUP = 0o660, 0o2770


def of_group(file: File, group: int) -> File:
    """A file that the kubelet writes: the group may read it."""
    user = file.owner.user if file.owner is not None else None
    return replace(file, mode=file.mode | _READ, owner=FileOwner(user, group))


def give_to_group(directory: Path, group: int, *, own: Own) -> None:
    """A volume that was just made. Raises OSError."""
    descriptor = os.open(directory, OPEN)
    try:
        own(descriptor, -1, group)
        os.fchmod(descriptor, _SHARED)
    finally:
        os.close(descriptor)


def give_all_to_group(volume: Path, group: int, policy: str, *, own: Own) -> None:
    """A volume that may have been used before; of files with the bits that upstream adds. Raises OSError."""
    top = os.open(volume, OPEN)
    try:
        status = os.fstat(top)
        if policy == "OnRootMismatch" and status.st_gid == group and _has(status, _DIRECTORY_OF_GROUP):
            return
        for entry in below(top):
            with suppress(FileNotFoundError):
                _give(entry, group, own)
        own(top, -1, group)
        os.fchmod(top, stat.S_IMODE(status.st_mode) | _DIRECTORY_OF_GROUP)  # last: a walk cut short is begun anew
    finally:
        os.close(top)


def _give(entry: Entry, group: int, own: Own) -> None:
    """What is neither file nor directory stays as it is."""
    descriptor = os.open(entry.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.directory)
    try:
        status = os.fstat(descriptor)
        kind = stat.S_IFMT(status.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            return
        bits = _DIRECTORY_OF_GROUP if kind == stat.S_IFDIR else _FILE_OF_GROUP
        if status.st_gid != group:
            own(descriptor, -1, group)
        if not _has(status, bits):
            os.chmod(reachable(descriptor), stat.S_IMODE(status.st_mode) | bits)
    finally:
        os.close(descriptor)


def _has(status: os.stat_result, bits: int) -> bool:
    return stat.S_IMODE(status.st_mode) & bits == bits
