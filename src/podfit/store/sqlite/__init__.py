"""The embedded store: one SQLite file, one process."""

from pathlib import Path

from podfit.store.logged import LoggedStore
from podfit.store.sqlite.file import StoreInUse, StoreUnusable, open_file
from podfit.store.sqlite.log import SqliteLog

__all__ = ["StoreInUse", "StoreUnusable", "sqlite_store"]


def sqlite_store(path: Path) -> LoggedStore:
    """Open the store, making the file (mode 0600) if it is not there. Call it inside a running event loop.

    Raises StoreInUse, StoreUnusable.
    """
    log = SqliteLog(open_file(path))
    return LoggedStore(log, log.load())
