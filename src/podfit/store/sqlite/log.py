"""The embedded log: one append-only SQLite table (its shape is in `file`).

`synchronous=FULL` makes every commit wait for the disk. The uniqueness of a key's successor rows means that a lost
update could not be written even by mistake: the commit would fail. A failed commit is rolled back and what follows
overwrites it; only if the machine dies right then can the refused writes be found after all, like those of a client
that lost its connection before the answer.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from podfit.store.index import prefix_end
from podfit.store.log import Loaded
from podfit.store.protocol import Change, DiskFull, Page, Record, StoreUnavailable
from podfit.store.sqlite import sums
from podfit.store.sqlite.checkpoint import Checkpointer
from podfit.store.sqlite.file import PAGE, StoreDamaged, StoreFile, unusable
from podfit.store.sqlite.reserve import MARGIN, PLENTY, Reserve

logger = logging.getLogger(__name__)

# A creation follows the key's deletion. Were the key still there, it would claim the same predecessor and fail.
_INSERTED = """(?, ?, ?, ?, COALESCE(
  ?, (SELECT iif(deleted, rev, previous) FROM log WHERE key = ? ORDER BY previous DESC LIMIT 1), 0), ?, ?)"""
_MOST_INSERTED = 32  # rows in one statement
LARGEST_INSERTED = 256 * 1024  # bytes of values in one statement of several rows; SQLite holds them all at once
_SUCCESSOR = "EXISTS (SELECT 1 FROM log AS s WHERE s.key = l.key AND s.previous = l.rev AND s.rev <= :revision)"
_THEN = f"FROM log AS l WHERE key >= :low AND key < :high AND rev <= :revision AND NOT deleted AND NOT {_SUCCESSOR}"
_SUM = "(SELECT sum FROM sums AS s WHERE s.rev = l.rev)"
_PAGE = f"SELECT key, value, created, rev, {_SUM} {_THEN} ORDER BY key LIMIT :limit"
_COUNT = f"SELECT COUNT(*) {_THEN}"
_OBSOLETE = f"SELECT rev FROM log AS l WHERE rev <= :revision AND (deleted OR {_SUCCESSOR}) ORDER BY rev"
_CHANGES = """
SELECT l.key, l.deleted, l.value, l.created, l.rev, p.value, p.created, p.rev,
(SELECT sum FROM sums AS s WHERE s.rev = l.rev), (SELECT sum FROM sums AS s WHERE s.rev = p.rev)
FROM log AS l LEFT JOIN log AS p ON p.rev = l.previous AND NOT p.deleted
WHERE l.rev > :after AND l.rev <= :until AND +l.key >= :low AND +l.key < :high ORDER BY l.rev LIMIT :limit
"""
_ABOVE_ALL_TEXT = b""  # SQLite sorts every blob behind every text

PAGES = 4  # that a change touches beside its value: of the table, the index and the sums, and parts of those above
SMALL = 64 * 2**10  # bytes: what has to fit before anything else is tried again
MOST_READ = 4 * 2**20  # bytes of history at once
UNLOOKED = 4 * 2**20  # bytes written, where there was plenty, before the disk is looked at again: a look takes 10 us
FULL = "the disk is full; objects can be deleted"

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]  # as SQLite gives it


class SqliteLog:
    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._reserve = Reserve(file.path)
        self._full = not self._reserve.held and not self._reserve.room(file.log_size())
        self._problem = FULL if self._full else ""
        self._unlooked = 0  # bytes until the next look at the disk
        self._writing = threading.Lock()
        self._checkpointer = Checkpointer(file, self._writing, self._reserve, left=file.log_size())

    @property
    def problem(self) -> str:
        return self._problem

    @property
    def full(self) -> bool:
        return self._full

    def room(self) -> bool:
        return self._reserve.room(self._file.log_size())

    def retry(self) -> None:
        if self._full:
            with self._writing:
                self._checkpointer.empty()
            if not self._reserve.take() and self._spare() < self._reserve.size():
                raise StoreUnavailable(self._problem)
            self._full = False
        self._check_room(SMALL)
        with self._transaction(single=True) as connection:
            connection.execute("UPDATE meta SET value = value WHERE name = 'schema'")

    def load(self) -> Loaded:
        """What is current. Raises StoreUnusable, and then has closed the file."""
        try:
            meta = dict(self._file.writer.execute("SELECT name, value FROM meta"))
            newest = self._file.writer.execute("SELECT COALESCE(MAX(rev), 0) FROM log").fetchone()[0]
            revision = max(newest, meta["revision"])
            return Loaded(self._current(), revision, meta["compacted"])
        except KeyError as error:
            self.close()
            raise StoreDamaged(f"{self._file.path} lacks {error}") from error
        except StoreDamaged:
            self.close()
            raise
        except sqlite3.Error as error:
            self.close()
            raise unusable(self._file.path, error) from error

    def _current(self) -> list[Record]:
        """Raises StoreDamaged that names what is not as it was written."""
        records, unsummed, damaged = sums.read(self._file.writer)
        if damaged:
            revisions = sorted({error.revision for error in damaged if error.revision})
            raise StoreDamaged(sums.told(self._file.path, damaged), revisions)
        self._sum(unsummed)
        return records

    def _sum(self, records: Sequence[Record]) -> None:
        """Add the sums of what an older podfit wrote; where the disk is full, at a later start."""
        if not records:
            return
        try:
            with self._transaction(freeing=True) as connection:
                sums.add(connection, records)
        except StoreUnavailable as error:
            logger.warning("no checksums of %d records of an older podfit error=%s", len(records), error)

    def append(self, changes: Sequence[Change], *, freeing: bool = False) -> None:
        size = sum(len(change.record.value) + PAGES * PAGE for change in changes)
        if freeing:
            self._keep_copyable(size)
        else:
            self._check_room(size)
        inserted = statements(changes)
        with self._transaction(single=len(inserted) == 1, freeing=freeing) as connection:
            for rows in inserted:
                connection.execute(_insert(len(rows)), [*chain.from_iterable(rows)])
        self._checkpointer.wrote(size)

    def compact(self, revision: int) -> None:
        with self._transaction(freeing=True) as connection:
            connection.execute(
                "UPDATE meta SET value = MAX(value, (SELECT COALESCE(MAX(rev), 0) FROM log)) WHERE name = 'revision'"
            )
            connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (revision,))
            sums.caught_up(connection)

    def forget(self, revisions: Sequence[int]) -> None:
        """What is deleted is overwritten, too, unless the disk is full: that takes as much room once more."""
        size = PAGES * PAGE * len(revisions)
        self._keep_copyable(size)
        with self._transaction(freeing=True) as connection:
            connection.execute(f"PRAGMA secure_delete={'FAST' if self._problem else 'ON'}")
            for table in ("log", "sums"):
                connection.executemany(f"DELETE FROM {table} WHERE rev = ?", ((revision,) for revision in revisions))
        self._checkpointer.wrote(size)

    def obsolete(self, revision: int) -> Sequence[int]:
        return self._read(lambda row: int(row[0]), _OBSOLETE, {"revision": revision})

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        where = {"revision": revision, "limit": limit or -1, **_range(prefix, after)}
        records = self._read(lambda row: sums.checked(*row), _PAGE, where)
        if not limit or len(records) < limit:
            return Page(records, revision, 0)
        where |= _range(prefix, records[-1].key)
        return Page(records, revision, self._read(lambda row: int(row[0]), _COUNT, where)[0])

    def changes(self, prefix: str, after: int, until: int, limit: int) -> Sequence[Change]:
        """The first of them, and no more than about `MOST_READ` bytes."""
        where = {"after": after, "until": until, "limit": limit, **_range(prefix)}
        found, size = list[Change](), 0
        try:
            for row in self._file.reader.execute(_CHANGES, where):
                found.append(change := _change(row))
                size += len(change.record.value) + (len(change.previous.value) if change.previous else 0)
                if size >= MOST_READ:
                    break
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._file.path}: {error}") from error
        return found

    def close(self) -> None:
        self._checkpointer.close()
        self._file.close()  # the last connection to close copies what is left of the write-ahead log

    @contextmanager
    def _transaction(self, *, single: bool = False, freeing: bool = False) -> Iterator[sqlite3.Connection]:
        """A `single` statement is a transaction by itself, and waits two times less for Python's lock. What is
        `freeing` does not show that anything else could be written."""
        connection = self._file.writer
        with self._writing:
            try:
                if not single:
                    connection.execute("BEGIN IMMEDIATE")
                yield connection
                if not single:
                    connection.execute("COMMIT")
            except sqlite3.Error as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise self._failed(error) from error
            else:
                if not freeing:
                    self._problem = ""
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _disk_full(self) -> DiskFull:
        """To be called while `_writing` is held."""
        self._full, self._problem, self._unlooked = True, FULL, 0
        gave = self._reserve.give_up()
        return DiskFull(FULL, room=self._checkpointer.empty() or gave)

    def _check_room(self, size: int) -> None:
        """Raises DiskFull when `size` bytes would not fit, once into the log of writes and once into the file, beside
        what the log holds already for the file: what cannot be copied would stand in the way of deletions."""
        if 2 * size <= self._unlooked:
            self._unlooked -= 2 * size
            return
        if self._reserve.free() >= PLENTY + 2 * size:
            self._unlooked = UNLOOKED
            return
        with self._writing:
            if self._owed() + size > self._reserve.size() // 2:
                self._checkpointer.empty()
            if self._fits(size) or (self._checkpointer.empty() and self._fits(size)):
                return
        self._problem = FULL
        raise DiskFull(FULL, room=True)

    def _keep_copyable(self, size: int) -> None:
        """Copy what the log holds before `size` bytes more of deletions take the room that copying needs: with the disk
        full and the log not to be copied, no deletion could be written ever again."""
        if self._unlooked:
            return
        if self._reserve.free() < 2 * size + self._owed() + MARGIN:
            with self._writing:
                self._checkpointer.empty()

    def _fits(self, size: int) -> bool:
        spare = self._spare()
        return self._reserve.free() >= size + self._owed() + max(0, size - spare) + self._reserve.slack(spare)

    def _spare(self) -> int:
        """Bytes inside the file that hold nothing: as good as a reserve, and where deletions make room."""
        return self._number("freelist_count") * PAGE

    def _owed(self) -> int:
        """Bytes by which the file has to grow for what only the log of writes holds."""
        return max(0, self._number("page_count") * PAGE - os.stat(self._file.path).st_size)

    def _number(self, pragma: str) -> int:
        return int(self._file.writer.execute(f"PRAGMA {pragma}").fetchone()[0])

    def _failed(self, error: sqlite3.Error) -> StoreUnavailable:
        """What it is for whoever wanted to write. A full disk is one until the reserve is there again."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and not self._reserve.room()):
            return self._disk_full()
        self._problem = f"{self._file.path}: {error}"
        return StoreUnavailable(self._problem)

    def _read(self, convert: Callable[[Row], T], query: str, where: dict[str, object]) -> list[T]:
        try:
            return [convert(row) for row in self._file.reader.execute(query, where)]
        except sqlite3.Error as error:
            raise StoreUnavailable(f"{self._file.path}: {error}") from error


def _range(prefix: str, after: str = "") -> dict[str, object]:
    """Bounds of the keys that start with `prefix` and come behind `after`."""
    low = max(prefix, after + "\0") if after else prefix
    return {"low": low, "high": prefix_end(prefix) or _ABOVE_ALL_TEXT}


@lru_cache(maxsize=_MOST_INSERTED)
def _insert(rows: int) -> str:
    return f"INSERT INTO appended VALUES {', '.join([_INSERTED] * rows)}"


def statements(changes: Sequence[Change]) -> list[list[Row]]:
    """The rows of each INSERT; for every statement the thread waits for Python's lock. A statement does not see what it
    inserts itself, so where changes follow one another on a key each has its own."""
    most = _MOST_INSERTED if len({change.record.key for change in changes}) == len(changes) else 1
    made: list[list[Row]] = []
    size = 0
    for change in changes:
        size += len(change.record.value)
        if not made or len(made[-1]) == most or size > LARGEST_INSERTED:
            made.append([])
            size = len(change.record.value)
        made[-1].append(_row(change))
    return made


def _row(change: Change) -> Row:
    record = change.record
    previous = change.previous.mod_revision if change.previous else None
    value = None if change.deleted else record.value
    revision, key, created = record.mod_revision, record.key, record.create_revision
    return revision, key, change.deleted, created, previous, key, value, sums.checksum(revision, key, created, value)


def _change(row: Row) -> Change:
    key, deleted, value, created, revision, old_value, old_created, old_revision, sum_, old_sum = row
    previous = None if old_revision is None else sums.checked(key, old_value, old_created, old_revision, old_sum)
    if not deleted:
        return Change(False, sums.checked(key, value, created, revision, sum_), previous)
    return Change(True, Record(key, old_value, created, revision), previous)
