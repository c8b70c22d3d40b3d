"""The embedded store: one SQLite file, one process."""

from pathlib import Path

from podfit.store.logged import LoggedStore
from podfit.store.sqlite.file import StoreDamaged, StoreInUse, StoreUnusable, open_file
from podfit.store.sqlite.log import SqliteLog
from podfit.store.sqlite.reserve import MARGIN, Reserve

__all__ = ["StoreDamaged", "StoreInUse", "StoreUnusable", "sqlite_store"]


def sqlite_store(path: Path, *, make: bool = True) -> LoggedStore:
    """Open the store, making the file (mode 0600) if it is not there and `make` is true. Call it inside a running event
    loop.

    Raises StoreInUse, StoreUnusable.
    """
    reserve = Reserve(path)
    try:
        file = open_file(path, make=make)
    except StoreUnusable as error:
        if isinstance(error, StoreDamaged) or not reserve.held or reserve.room() or not reserve.give_up():
            raise
        file = open_file(path, make=make)  # what SQLite keeps beside the file takes some room
    if reserve.held and reserve.free() < MARGIN:
        reserve.give_up()  # a start writes small files beside the store, a kubeconfig among them
    log = SqliteLog(file)
    return LoggedStore(log, log.load())
