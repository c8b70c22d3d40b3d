"""Opening the file: for one process only, with a schema this podfit knows.

The lock is a `flock` on a neighbour of the file, which the kernel drops with the process however that ends. SQLite's
own locks would let two processes take turns, and each would answer reads from a memory without the other's writes.

    log(rev PRIMARY KEY, key, deleted, created, previous, value)   one row a revision; value is NULL for a deletion
    UNIQUE (key, previous)      `previous` is the key's row before, 0 for its first: a row has one successor at most
    meta(name, value)           schema, compacted, and revision: the newest when last compacted
    sums(rev, sum)              checksums of rows, in a table that older podfits leave alone (`sums`)

A file of an older schema is brought up when it is opened, step by step in one transaction, so a crash leaves the old
file. A file of a newer one is refused: an older podfit cannot know what it would break.
"""

import contextlib
import fcntl
import logging
import os
import sqlite3
from collections.abc import Collection
from pathlib import Path

import msgspec

from podfit.net.files import sync_directory
from podfit.store.protocol import StoreError
from podfit.store.sqlite import sums

logger = logging.getLogger(__name__)

UPGRADES: tuple[str, ...] = ()  # statement by statement, what makes of a file of schema N (1, 2, …) one of the next
PAGE = 8192  # bytes; an object of 4 KB fits a page
FIRST_REVISION = 1  # of the empty store

_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE log (
  rev INTEGER PRIMARY KEY, key TEXT NOT NULL, deleted INTEGER NOT NULL, created INTEGER NOT NULL,
  previous INTEGER NOT NULL, value BLOB, UNIQUE (key, previous)
) STRICT;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO meta VALUES ('schema', {schema}), ('compacted', 0), ('revision', {first});
COMMIT;
"""


def newest_schema() -> int:
    return 1 + len(UPGRADES)


class StoreInUse(StoreError):
    """Another process has the file open."""


class StoreUnusable(StoreError):
    """The file is damaged, of another program or version, or cannot be opened."""


class StoreDamaged(StoreUnusable):
    """What was a store can be read no more, or not all of it. `revisions` are those of records that are damaged."""

    def __init__(self, message: str, revisions: Collection[int] = ()) -> None:
        super().__init__(message)
        self.revisions = tuple(revisions)


class StoreFile(msgspec.Struct, frozen=True):
    """An open store. Each connection serves one thread at a time."""

    path: Path
    writer: sqlite3.Connection
    reader: sqlite3.Connection
    copier: sqlite3.Connection  # moves the write-ahead log into the database
    resources: contextlib.ExitStack

    @property
    def log_path(self) -> str:
        """The path of the write-ahead log, as SQLite names it."""
        return f"{self.path}-wal"

    def log_size(self) -> int:
        """Bytes of the write-ahead log's file."""
        return os.stat(self.log_path).st_size

    def close(self) -> None:
        self.resources.close()


def open_file(path: Path, *, make: bool = True) -> StoreFile:
    """Open the store, and make it when it is missing or empty and `make` allows that.

    Raises StoreInUse, StoreUnusable; then nothing is left open.
    """
    with contextlib.ExitStack() as resources:
        try:
            if not make and os.stat(path).st_size == 0:  # SQLite would throw its write-ahead log away
                raise StoreDamaged(f"{path} is empty")
            resources.callback(os.close, _lock(path))
            writer, reader, copier = (_connect(path, resources) for _ in range(3))
            _check_schema(path, writer, make=make)
            sums.prepare(writer)
        except (sqlite3.Error, OSError) as error:
            raise unusable(path, error) from error
        return StoreFile(path, writer, reader, copier, resources.pop_all())


def unusable(path: Path, error: Exception) -> StoreUnusable:
    """SQLite's errors for a file that is none of its own, or malformed, are of the general kind; a text that is not
    UTF-8 is named by Python."""
    is_damage = type(error) is sqlite3.DatabaseError or str(error).startswith("Could not decode")
    kind = StoreDamaged if is_damage else StoreUnusable
    return kind(f"{path}: {error}")


def _lock(path: Path) -> int:
    """Hold the file for this process, and give it its mode before SQLite writes to it."""
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        database = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(database, 0o600)
        finally:
            os.close(database)
        sync_directory(path.parent)
    except BlockingIOError:
        os.close(handle)
        raise StoreInUse(f"{path} is open in another process") from None
    except OSError:
        os.close(handle)
        raise
    return handle


def _connect(path: Path, resources: contextlib.ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    resources.callback(connection.close)
    connection.execute(f"PRAGMA page_size={PAGE}")
    if (mode := connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]) != "wal":
        raise StoreUnusable(f"{path}: the file system allows no write-ahead log (journal mode {mode})")
    for pragma in ("synchronous=FULL", "wal_autocheckpoint=0", "busy_timeout=5000"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check_schema(path: Path, connection: sqlite3.Connection, *, make: bool) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables and not make:
        raise StoreDamaged(f"{path} holds no tables")
    if not tables:
        connection.executescript(_TABLES.format(schema=newest_schema(), first=FIRST_REVISION))
        return
    found = check_known(path, connection, tables)
    if found < newest_schema():
        _upgrade(connection, found)
        logger.info("store brought up file=%s schema=%d from=%d", path, newest_schema(), found)


def check_known(path: Path, connection: sqlite3.Connection, tables: set[str]) -> int:
    """The schema of a file that this podfit can read. Raises StoreUnusable for any other."""
    if not {"log", "meta"} <= tables:
        raise StoreUnusable(f"{path} is a database, but not a podfit store")
    row = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    newest = newest_schema()
    if row is None or not 1 <= row[0] <= newest:
        found = row[0] if row else "unknown"
        newer = ": a newer podfit wrote it" if row and row[0] > newest else ""
        raise StoreUnusable(f"{path} has schema {found}, this podfit reads schema {newest}{newer}")
    return int(row[0])


def _upgrade(connection: sqlite3.Connection, schema: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in UPGRADES[schema - 1 :]:
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (newest_schema(),))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
