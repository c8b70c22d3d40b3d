"""The embedded log: one append-only SQLite table (its shape is in `file`).

`synchronous=FULL` makes every commit wait for the disk. The uniqueness of a key's successor rows means that a lost
update could not be written even by mistake: the commit would fail. A failed commit is rolled back and what follows
overwrites it; only if the machine dies right then can the refused writes be found after all, like those of a client
that lost its connection before the answer.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from podfit.store.index import prefix_end
from podfit.store.logged import Loaded
from podfit.store.protocol import Change, Page, Record, StoreUnavailable
from podfit.store.sqlite.checkpoint import Checkpointer
from podfit.store.sqlite.file import PAGE, StoreFile, StoreUnusable

# A creation follows the key's deletion. Were the key still there, it would claim the same predecessor and fail.
_INSERT = """
INSERT INTO log VALUES (?, ?, ?, ?, COALESCE(
  ?, (SELECT iif(deleted, rev, previous) FROM log WHERE key = ? ORDER BY previous DESC LIMIT 1), 0), ?)
"""
_SUCCESSOR = "EXISTS (SELECT 1 FROM log AS s WHERE s.key = l.key AND s.previous = l.rev AND s.rev <= :revision)"
_THEN = f"FROM log AS l WHERE key >= :low AND key < :high AND rev <= :revision AND NOT deleted AND NOT {_SUCCESSOR}"
_PAGE = f"SELECT key, value, created, rev {_THEN} ORDER BY key LIMIT :limit"
_COUNT = f"SELECT COUNT(*) {_THEN}"
_OBSOLETE = f"SELECT rev FROM log AS l WHERE rev <= :revision AND (deleted OR {_SUCCESSOR}) ORDER BY rev"
_CHANGES = """
SELECT l.key, l.deleted, l.value, l.created, l.rev, p.value, p.created, p.rev FROM log AS l
LEFT JOIN log AS p ON p.rev = l.previous AND NOT p.deleted
WHERE l.rev > :after AND l.rev <= :until AND +l.key >= :low AND +l.key < :high ORDER BY l.rev LIMIT :limit
"""
_ABOVE_ALL_TEXT = b""  # SQLite sorts every blob behind every text

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]  # as SQLite gives it


class SqliteLog:
    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._writing = threading.Lock()
        self._checkpointer = Checkpointer(file.copier, self._writing, left=file.log_size())

    def load(self) -> Loaded:
        """What is current. Raises StoreUnusable, and then has closed the file."""
        try:
            meta = dict(self._file.writer.execute("SELECT name, value FROM meta"))
            newest = self._file.writer.execute("SELECT COALESCE(MAX(rev), 0) FROM log").fetchone()[0]
            revision = max(newest, meta["revision"])
            where = {"revision": revision, "limit": -1, **_range("")}
            records = [Record(*row) for row in self._file.writer.execute(_PAGE, where)]
            return Loaded(records, revision, meta["compacted"])
        except (sqlite3.Error, KeyError) as error:
            self.close()
            raise StoreUnusable(f"{self._file.path}: {error}") from error

    def append(self, changes: Sequence[Change]) -> None:
        with self._transaction(single=len(changes) == 1) as connection:
            connection.executemany(_INSERT, map(_row, changes))
        self._checkpointer.wrote(sum(len(change.record.value) + PAGE for change in changes))

    def compact(self, revision: int) -> None:
        with self._transaction() as connection:
            connection.execute(
                "UPDATE meta SET value = MAX(value, (SELECT COALESCE(MAX(rev), 0) FROM log)) WHERE name = 'revision'"
            )
            connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (revision,))

    def forget(self, revisions: Sequence[int]) -> None:
        with self._transaction() as connection:
            connection.executemany("DELETE FROM log WHERE rev = ?", ((revision,) for revision in revisions))
        self._checkpointer.wrote(PAGE * len(revisions))

    def obsolete(self, revision: int) -> Sequence[int]:
        return self._read(lambda row: int(row[0]), _OBSOLETE, {"revision": revision})

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        where = {"revision": revision, "limit": limit or -1, **_range(prefix, after)}
        records = self._read(lambda row: Record(*row), _PAGE, where)
        if not limit or len(records) < limit:
            return Page(records, revision, 0)
        where |= _range(prefix, records[-1].key)
        return Page(records, revision, self._read(lambda row: int(row[0]), _COUNT, where)[0])

    def changes(self, prefix: str, after: int, until: int, limit: int) -> Sequence[Change]:
        where = {"after": after, "until": until, "limit": limit, **_range(prefix)}
        return self._read(_change, _CHANGES, where)

    def close(self) -> None:
        self._checkpointer.close()
        self._file.close()  # the last connection to close copies what is left of the write-ahead log

    @contextmanager
    def _transaction(self, *, single: bool = False) -> Iterator[sqlite3.Connection]:
        """A `single` statement is a transaction by itself, and waits two times less for Python's lock."""
        connection = self._file.writer
        with self._writing:
            try:
                if not single:
                    connection.execute("BEGIN IMMEDIATE")
                yield connection
                if not single:
                    connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise StoreUnavailable(f"{self._file.path}: {error}") from error
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _read(self, convert: Callable[[Row], T], query: str, where: dict[str, object]) -> list[T]:
        try:
            return [convert(row) for row in self._file.reader.execute(query, where)]
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._file.path}: {error}") from error


def _range(prefix: str, after: str = "") -> dict[str, object]:
    """Bounds of the keys that start with `prefix` and come behind `after`."""
    low = max(prefix, after + "\0") if after else prefix
    return {"low": low, "high": prefix_end(prefix) or _ABOVE_ALL_TEXT}


def _row(change: Change) -> Row:
    record = change.record
    previous = change.previous.mod_revision if change.previous else None
    value = None if change.deleted else record.value
    return record.mod_revision, record.key, change.deleted, record.create_revision, previous, record.key, value


def _change(row: Row) -> Change:
    key, deleted, value, created, revision, old_value, old_created, old_revision = row
    previous = None if old_revision is None else Record(key, old_value, old_created, old_revision)
    return Change(bool(deleted), Record(key, old_value if deleted else value, created, revision), previous)
