"""The stores that an API server has in its own process, so that whoever composes one need not know any store."""

from pathlib import Path

from podfit.net.inline import InlineExecutor
from podfit.store.memory import memory_store
from podfit.store.protocol import Store, StoreError
from podfit.store.sqlite import sqlite_store

__all__ = ["Store", "StoreError", "embedded_store", "passing_store"]


def embedded_store(path: Path) -> Store:
    """Open or make the store in a file. Raises StoreError when the file is damaged or in use."""
    return sqlite_store(path)


def passing_store() -> Store:
    """A store that ends with the process, without a thread of its own."""
    return memory_store(InlineExecutor)
