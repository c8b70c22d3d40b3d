"""Files that are either the old or the new, whole, whatever happens in between."""

import os
import tempfile
from pathlib import Path


def write_atomic(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace `path` durably: after the return the new content survives the machine losing power.

    The content goes to a neighbour that is renamed over `path`, so a reader never sees a half of it. Missing parent
    directories are made. Raises OSError, and then leaves no neighbour behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, neighbour = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(neighbour, path)
    except BaseException:
        os.unlink(neighbour)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make creations, renames and deletions inside a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
