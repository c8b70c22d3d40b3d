"""Disk usage of a directory, however its owner changes it meanwhile.

No link is followed, and no other file system is entered: each directory is opened from the descriptor of the one above.
A file with several names counts once.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from podfit.decide.node.pod_load import Used

BLOCK = 512  # bytes, whatever the file system's own are
MOST_LEVELS = 128  # each holds a descriptor open
CLOCK_EVERY = 1000  # entries between two looks at the clock
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def usage(root: Path, expired: Callable[[], bool] = lambda: False) -> Used:
    """Of a file, or of everything below `root` and of itself; nothing when it is not there. What is deeper than
    MOST_LEVELS, or not reached before `expired`, is not counted. Raises OSError when `root` cannot be read.
    """
    try:
        status = os.lstat(root)
        if stat.S_ISREG(status.st_mode):
            return Used(status.st_blocks * BLOCK, 1)
        top = os.open(root, _OPEN)
    except FileNotFoundError:
        return Used()
    size, inodes, shared = 0, 0, set()
    for status in _below(top):
        if not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1:
            if status.st_ino in shared:
                continue
            shared.add(status.st_ino)
        size, inodes = size + status.st_blocks * BLOCK, inodes + 1
        if inodes % CLOCK_EVERY == 0 and expired():
            break
    return Used(size, inodes)


def _below(top: int) -> Iterator[os.stat_result]:
    """Of a directory, whose descriptor is closed at the end, and of what is in it, depth first."""
    device = os.fstat(top).st_dev
    descriptors, walks = [top], [_entries(top)]
    try:
        yield os.fstat(top)
        while walks:
            entry = next(walks[-1], None)
            if entry is None:
                os.close(descriptors.pop())
                walks.pop()
                continue
            name, status = entry
            if status.st_dev != device:
                continue
            yield status
            if stat.S_ISDIR(status.st_mode) and len(walks) < MOST_LEVELS:
                with suppress(OSError):  # it went, or became something else
                    descriptors.append(os.open(name, _OPEN, dir_fd=descriptors[-1]))
                    walks.append(_entries(descriptors[-1]))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _entries(directory: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(directory) as found:
        for entry in found:
            with suppress(FileNotFoundError):
                yield entry.name, entry.stat(follow_symlinks=False)
