"""Disk usage of a directory; a file with several names counts once."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from podfit.decide.node.pod_load import Used
from podfit.kubelet.disk.walk import OPEN, below

BLOCK = 512  # bytes, whatever the file system's own are
CLOCK_EVERY = 1000  # entries between two looks at the clock


def usage(root: Path, expired: Callable[[], bool] = lambda: False) -> Used:
    """The usage of a file, or of everything below `root` and of itself; nothing when it is not there. What `below`
    leaves out, or what was not reached before `expired`, is not counted. Raises OSError when `root` cannot be read."""
    try:
        status = os.lstat(root)
        if stat.S_ISREG(status.st_mode):
            return Used(status.st_blocks * BLOCK, 1)
        top = os.open(root, OPEN)
    except FileNotFoundError:
        return Used()
    try:
        return _counted(top, expired)
    finally:
        os.close(top)


def _counted(top: int, expired: Callable[[], bool]) -> Used:
    size, inodes = os.fstat(top).st_blocks * BLOCK, 1
    shared: set[int] = set()
    for entry in below(top):
        status = entry.status
        if not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1:
            if status.st_ino in shared:
                continue
            shared.add(status.st_ino)
        size, inodes = size + status.st_blocks * BLOCK, inodes + 1
        if inodes % CLOCK_EVERY == 0 and expired():
            break
    return Used(size, inodes)
