"""Small work on the file system, done where it stands: each call is a few system calls on a local disk."""

import shutil
from pathlib import Path


def make_directory(path: Path) -> None:
    """With its parents; fine if it is there already."""
    path.mkdir(parents=True, exist_ok=True)


def delete_file(path: Path) -> None:
    path.unlink(missing_ok=True)


def delete_tree(path: Path) -> None:
    """With everything in it. Raises OSError; a tree that is not there is fine."""
    if path.exists():
        shutil.rmtree(path)
