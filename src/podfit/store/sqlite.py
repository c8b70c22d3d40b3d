"""The embedded log: one append-only SQLite table.

One row a revision; a row names the one it replaces, and the pair of key and replaced revision is unique, so a lost
update cannot be written even by mistake. `synchronous=FULL` makes every commit wait for the disk. The write-ahead log
is copied back by a second connection off the commit path: a checkpoint inside a commit costs 20 to 160 ms.

    log(rev PRIMARY KEY, key, deleted, created, previous, value)    value is NULL for a deletion
    UNIQUE (key, previous)                                          and the way to a key's history
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from podfit.store.index import upper_bound
from podfit.store.logged import Loaded, LoggedStore
from podfit.store.protocol import Change, Page, Record, StoreError

SCHEMA = 1  # PRAGMA user_version
FIRST_REVISION = 1
CHECKPOINT_BYTES = 8 * 2**20  # written since the last checkpoint

_TABLES = """
CREATE TABLE log (
  rev INTEGER PRIMARY KEY, key TEXT NOT NULL, deleted INTEGER NOT NULL, created INTEGER NOT NULL,
  previous INTEGER NOT NULL, value BLOB, UNIQUE (key, previous)
) STRICT;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO meta VALUES ('compacted', 0), ('revision', 1);
"""
_CURRENT = """
SELECT key, value, created, rev FROM log AS l WHERE NOT deleted AND rev <= :revision AND key >= :low AND key < :high
AND NOT EXISTS (SELECT 1 FROM log AS n WHERE n.key = l.key AND n.rev > l.rev AND n.rev <= :revision) ORDER BY key
"""
_CHANGES = """
SELECT l.key, l.deleted, l.value, l.created, l.rev, p.value, p.created, p.rev FROM log AS l
LEFT JOIN log AS p ON p.rev = l.previous WHERE l.rev > ? AND l.rev <= ? AND l.key >= ? AND l.key < ? ORDER BY l.rev
"""
_COMPACT = """
DELETE FROM log WHERE rev <= :revision AND (deleted OR rev IN
(SELECT previous FROM log WHERE rev <= :revision AND previous > 0))
"""


class StoreInUse(StoreError):
    """Another process has the file open."""


class StoreUnusable(StoreError):
    """The file is damaged, of another podfit, or cannot be opened."""


class SqliteLog:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = _lock(path)
        try:
            self._writer = self._connect()
            self._reader = self._connect()
        except sqlite3.Error as error:
            os.close(self._lock)
            raise StoreUnusable(f"{path}: {error}") from error
        self._uncopied = 0
        self._copying: threading.Thread | None = None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=0", "busy_timeout=5000"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def load(self) -> Loaded:
        """Open or make the tables, and read what is current. Raises StoreUnusable."""
        try:
            self._prepare()
            meta = dict(self._writer.execute("SELECT name, value FROM meta"))
            newest = self._writer.execute("SELECT COALESCE(MAX(rev), 0) FROM log").fetchone()[0]
            revision = max(newest, meta["revision"], FIRST_REVISION)
            rows = self._writer.execute(_CURRENT, {"revision": revision, "low": "", "high": upper_bound("")})
            return Loaded([Record(*row) for row in rows], revision, meta["compacted"])
        except sqlite3.Error as error:
            raise StoreUnusable(f"{self._path}: {error}") from error

    def _prepare(self) -> None:
        version = self._writer.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._writer.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version = {SCHEMA};COMMIT;")
        elif version != SCHEMA:
            raise StoreUnusable(f"{self._path} has schema {version}, this podfit reads schema {SCHEMA}")

    def append(self, changes: Sequence[Change]) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", map(_row, changes))
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise StoreError(f"{self._path}: {error}") from error
        self._uncopied += sum(len(change.record.value) for change in changes)
        if self._uncopied > CHECKPOINT_BYTES:
            self._uncopied = 0
            self._copy_back()

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _copy_back(self) -> None:
        if self._copying is None or not self._copying.is_alive():
            self._copying = threading.Thread(target=self._checkpoint, name="store-checkpoint")
            self._copying.start()

    def _checkpoint(self) -> None:
        connection = self._connect()
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def compact(self, revision: int) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            newest = self._writer.execute("SELECT COALESCE(MAX(rev), 0) FROM log").fetchone()[0]
            self._writer.execute("UPDATE meta SET value = MAX(value, ?) WHERE name = 'revision'", (newest,))
            self._writer.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (revision,))
            self._writer.execute(_COMPACT, {"revision": revision})
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise StoreError(f"{self._path}: {error}") from error

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        low = max(prefix, after + "\0") if after else prefix
        where = {"revision": revision, "low": low, "high": upper_bound(prefix)}
        records = [Record(*row) for row in self._reader.execute(_CURRENT, where)]
        shown = records[:limit] if limit else records
        return Page(shown, revision, len(records) - len(shown))

    def changes(self, prefix: str, after: int, until: int) -> Sequence[Change]:
        rows = self._reader.execute(_CHANGES, (after, until, prefix, upper_bound(prefix)))
        return list(map(_change, rows))

    def close(self) -> None:
        if self._copying is not None:
            self._copying.join()
        self._reader.close()
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writer.close()
        os.close(self._lock)


def sqlite_store(path: Path) -> LoggedStore:
    """Open the store, making the file (mode 0600) if it is not there. Call it inside a running event loop."""
    log = SqliteLog(path)
    return LoggedStore(log, log.load())


def _lock(path: Path) -> int:
    """Hold the file for this process; the kernel lets go when the process dies. Also gives it its mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise StoreInUse(f"{path} is open in another process") from None
    return handle


def _row(change: Change) -> tuple[int, str, bool, int, int, bytes | None]:
    record, previous = change.record, change.previous.mod_revision if change.previous else 0
    # A key that is created again after a deletion follows the deletion, which no reader counts as a record.
    link = previous or -record.mod_revision
    value = None if change.deleted else record.value
    return record.mod_revision, record.key, change.deleted, record.create_revision, link, value


def _change(row: Iterable[object]) -> Change:
    key, deleted, value, created, revision, old_value, old_created, old_revision = row
    previous = Record(key, old_value, old_created, old_revision) if old_revision else None  # type: ignore[arg-type]
    final = old_value if deleted else value
    return Change(bool(deleted), Record(key, final, created, revision), previous)  # type: ignore[arg-type]
