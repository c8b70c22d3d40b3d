"""Everything below a directory, however its owner changes it meanwhile.

No link is followed and no other file system is entered: each directory is opened from the descriptor of the one above.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

import msgspec

MOST_LEVELS = 128
"""Each holds a descriptor open; what is deeper is left out."""
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(msgspec.Struct, frozen=True):
    """A name in a directory that is open, and what it was a moment ago."""

    directory: int
    name: str
    status: os.stat_result


def below(top: int) -> Iterator[Entry]:
    """Depth first, a directory before what is in it. `top` stays open. Raises OSError when it cannot be read."""
    device = os.fstat(top).st_dev
    descriptors, walks = [top], [_entries(top)]
    try:
        while walks:
            entry = next(walks[-1], None)
            if entry is None:
                walks.pop()
                if descriptors[-1] != top:
                    os.close(descriptors.pop())
                continue
            if entry.status.st_dev != device:
                continue
            yield entry
            if stat.S_ISDIR(entry.status.st_mode) and len(walks) < MOST_LEVELS:
                with suppress(OSError):  # it went, or became something else
                    descriptors.append(os.open(entry.name, OPEN, dir_fd=descriptors[-1]))
                    walks.append(_entries(descriptors[-1]))
    finally:
        for descriptor in descriptors[1:]:
            os.close(descriptor)


def _entries(directory: int) -> Iterator[Entry]:
    with os.scandir(directory) as names:
        for name in names:
            with suppress(FileNotFoundError):
                yield Entry(directory, name.name, name.stat(follow_symlinks=False))
