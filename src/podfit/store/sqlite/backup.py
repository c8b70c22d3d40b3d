"""Copies of a store's file, taken while its owner writes, and made ready to take its place.

SQLite itself makes the copy: a reader in another process sees one moment of the write-ahead log, and the writer is
never held back. A copy that becomes a store again remembers no history: whoever watched the original from some revision
is told that it is gone, and lists anew.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from podfit.core.errors import plainly
from podfit.net.files import sync_directory
from podfit.store.sqlite import sums
from podfit.store.sqlite.file import StoreUnusable, check_known, open_file

_CURRENT = """
SELECT COUNT(*) FROM log AS l WHERE NOT deleted
AND NOT EXISTS (SELECT 1 FROM log AS s WHERE s.key = l.key AND s.previous = l.rev)
"""


class StoreFacts(msgspec.Struct, frozen=True):
    schema: int
    revision: int
    objects: int


def copy_store(source: Path, target: Path) -> StoreFacts:
    """Write `target` (mode 0600, durable), which must not exist. Raises StoreUnusable, and then leaves nothing."""
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreUnusable(f"{target}: {plainly(error, about=str(target))}") from error
    try:
        with _opened(source) as connection:
            check_known(source, connection, _tables(connection))
            connection.execute("VACUUM INTO ?", (str(target),))
        with target.open("rb") as file:
            os.fsync(file.fileno())
        sync_directory(target.parent)
        return check_store(target)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StoreUnusable(f"{target}: {plainly(error, about=str(target))}") from error
        raise


def check_store(path: Path) -> StoreFacts:
    """What a file holds that is whole. Raises StoreUnusable for any other."""
    with _opened(path) as connection:
        schema = check_known(path, connection, _tables(connection))
        verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StoreUnusable(f"{path} is damaged: {verdict}")
        if _sums_are_there(connection) and (found := sums.read(connection)[2]):
            raise StoreUnusable(sums.told(path, found))
        newest = connection.execute(
            "SELECT MAX((SELECT COALESCE(MAX(rev), 0) FROM log), (SELECT value FROM meta WHERE name = 'revision'))"
        ).fetchone()[0]
        return StoreFacts(schema, newest, connection.execute(_CURRENT).fetchone()[0])


def forget_history(path: Path, *, at_least: int = 0) -> int:
    """Make a copy ready to be a store: its revision, `at_least` the one given, is the oldest that can be asked for."""
    file = open_file(path)
    try:
        revision = max(check_store(path).revision, at_least)
        file.writer.execute("BEGIN IMMEDIATE")
        file.writer.execute("UPDATE meta SET value = ? WHERE name IN ('revision', 'compacted')", (revision,))
        sums.caught_up(file.writer)
        file.writer.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreUnusable(f"{path}: {error}") from error
    finally:
        file.close()
    return revision


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """For reading; a store whose process was killed needs its write-ahead log replayed, so not strictly read-only."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=10)) as found:
            yield found
    except sqlite3.Error as error:
        raise StoreUnusable(f"{path}: {error}") from error


def _sums_are_there(connection: sqlite3.Connection) -> bool:
    """A file of an older podfit has none."""
    return "sums" in _tables(connection)


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
