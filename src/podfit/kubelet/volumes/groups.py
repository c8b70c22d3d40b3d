"""fsGroup: the files of a pod's own volumes belong to a group, as upstream's.

A volume is made by the kubelet and is empty when it is given to the group, so there is nothing below to walk through,
and both change policies (Always, OnRootMismatch) come to the same. Files that the kubelet writes are written with
their group; what containers create gets it by the set-group-id bit. hostPath volumes are left alone.
"""

import os
from dataclasses import replace
from pathlib import Path

from podfit.kubelet.volumes.atomic import File, Own, Owner

_READ = 0o440
_SHARED = 0o2777
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def of_group(file: File, group: int) -> File:
    """A file that the kubelet writes: the group may read it."""
    user = file.owner.user if file.owner is not None else None
    return replace(file, mode=file.mode | _READ, owner=Owner(user, group))


def give_to_group(directory: Path, group: int, *, own: Own) -> None:
    """A volume that was just made. Raises OSError."""
    descriptor = os.open(directory, _DIRECTORY)
    try:
        own(descriptor, -1, group)
        os.fchmod(descriptor, _SHARED)
    finally:
        os.close(descriptor)
