"""Small file system calls made in the event loop's thread: each is a few system calls on a local disk."""

import os
from pathlib import Path


def new_file(path: Path, *, mode: int) -> Path:
    """An empty file that was not there. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
    return path


def delete_file(path: Path) -> None:
    path.unlink(missing_ok=True)


def write_in_place(path: Path, data: bytes, *, mode: int) -> None:
    """Into the file that is there, since a container may have it mounted, or a new one. No link is followed. Raises
    OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
