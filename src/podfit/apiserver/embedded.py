"""The store that an API server has in its own process, so that whoever composes one need not know any store."""

from pathlib import Path

from podfit.store.protocol import Store, StoreError
from podfit.store.sqlite import sqlite_store

__all__ = ["Store", "StoreError", "embedded_store"]


def embedded_store(path: Path) -> Store:
    """Open or make the store in a file. Raises StoreError when the file is damaged or in use."""
    return sqlite_store(path)
