"""Checksums of records: what a disk gives back otherwise than it was written is named, and never served.

    sums(rev PRIMARY KEY, sum)      CRC-32 of a row of the log: revision, creation, deletion, key and value

The table stands beside the log, whose rows and whose schema stay as they were: an older podfit reads and writes the
file, and knows nothing of sums. What it wrote gets its sums when this one opens the file again (of what is current;
the rest is history for ten minutes), and the sums of what it forgot go. `summed` in `meta` is `compacted` as this
podfit last left it, which tells whether an older one has forgotten something since.

A temporary view takes a row with its sum, so that both are written by one statement.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import msgspec

from podfit.store.protocol import Record, RecordDamaged

MOST_NAMED = 5
MISSING = "CREATE TABLE IF NOT EXISTS sums (rev INTEGER PRIMARY KEY, sum INTEGER NOT NULL) STRICT"
_SUMMED = "INSERT OR IGNORE INTO meta SELECT 'summed', value FROM meta WHERE name = 'compacted'"
_FORGOTTEN = "SELECT rev FROM sums WHERE NOT EXISTS (SELECT 1 FROM log WHERE log.rev = sums.rev)"
_BEHIND = "SELECT 1 FROM meta AS m, meta AS s WHERE m.name = 'compacted' AND s.name = 'summed' AND m.value > s.value"
_CAUGHT_UP = """
UPDATE meta SET value = (SELECT value FROM meta WHERE name = 'compacted') WHERE name = 'summed'
"""
_APPENDED = """
CREATE TEMP VIEW appended AS
  SELECT l.rev, l.key, l.deleted, l.created, l.previous, l.value, s.sum FROM log AS l JOIN sums AS s ON s.rev = l.rev;
CREATE TEMP TRIGGER append INSTEAD OF INSERT ON appended BEGIN
  INSERT INTO log VALUES (new.rev, new.key, new.deleted, new.created, new.previous, new.value);
  INSERT OR REPLACE INTO sums VALUES (new.rev, new.sum);
END;
"""
_ALL = """
SELECT l.key, l.deleted, l.value, l.created, l.rev, s.sum
FROM log AS l NOT INDEXED LEFT JOIN sums AS s ON s.rev = l.rev ORDER BY l.rev
"""
_HEADS = """
FROM log AS l WHERE key >= '' AND NOT deleted
AND NOT EXISTS (SELECT 1 FROM log AS s WHERE s.key = l.key AND s.previous = l.rev)
"""
_TWICE = f"SELECT key, MAX(rev) {_HEADS} GROUP BY key HAVING COUNT(*) > 1"
_KEY = "SELECT key FROM log INDEXED BY sqlite_autoindex_log_1 WHERE rev = ?"


def checksum(revision: int, key: str, created: int, value: bytes | None) -> int:
    """`value` is None for a deletion."""
    about = f"{revision} {created} {value is None} {key}"
    return crc32(value or b"", crc32(about.encode(errors="surrogatepass")))


def prepare(connection: sqlite3.Connection) -> None:
    """Make a file that may be of an older podfit ready for sums. Touches nothing where it is ready."""
    there = "SELECT 1 FROM sqlite_schema WHERE name = 'sums'"
    if connection.execute(there).fetchone() is None or connection.execute(_BEHIND).fetchone() is not None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(MISSING)
        connection.execute(_SUMMED)
        if connection.execute(_BEHIND).fetchone() is not None:
            connection.execute(f"DELETE FROM sums WHERE rev IN ({_FORGOTTEN})")
            connection.execute(_CAUGHT_UP)
        connection.execute("COMMIT")
    connection.executescript(_APPENDED)


def caught_up(connection: sqlite3.Connection) -> None:
    """`compacted` was written by this podfit."""
    connection.execute(_CAUGHT_UP)


def checked(key: str, value: bytes | None, created: int, revision: int, sum_: int | None) -> Record:
    """A row that is no deletion as a record. Raises RecordDamaged; a row of an older podfit has no sum."""
    if sum_ is None:
        if not isinstance(value, bytes) or (value[:1] == b"{" and not _is_json(value)):
            raise RecordDamaged(key, revision)
    elif value is None or checksum(revision, key, created, value) != sum_:
        raise RecordDamaged(key, revision)
    return Record(key, value, created, revision)


def add(connection: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Sums of what an older podfit has written, within a transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO sums VALUES (?, ?)",
        (
            (record.mod_revision, checksum(record.mod_revision, record.key, record.create_revision, record.value))
            for record in records
        ),
    )


def read(connection: sqlite3.Connection) -> tuple[list[Record], list[Record], list[RecordDamaged]]:
    """What is current, found without the index of keys; which of it has no sum; and what is damaged, also of history
    and of that index."""
    current: dict[str, tuple[Record, bool]] = {}
    damaged = [RecordDamaged(_key_of(connection, revision), revision) for (revision,) in connection.execute(_FORGOTTEN)]
    for key, deleted, value, created, revision, sum_ in connection.execute(_ALL):
        try:
            if not deleted:
                current[key] = checked(key, value, created, revision, sum_), sum_ is not None
                continue
            if value is not None or (sum_ is not None and checksum(revision, key, created, None) != sum_):
                raise RecordDamaged(key, revision)
            current.pop(key, None)
        except RecordDamaged as error:
            damaged.append(error)
    if not damaged and connection.execute(f"SELECT COUNT(*) {_HEADS}").fetchone()[0] != len(current):
        damaged = [RecordDamaged(*row) for row in connection.execute(_TWICE)]
        damaged = damaged or [RecordDamaged("the index of keys, which `REINDEX` makes anew,", 0)]
    unsummed = [record for record, summed in current.values() if not summed]
    return [record for record, _ in current.values()], unsummed, damaged


def _key_of(connection: sqlite3.Connection, revision: int) -> str:
    """As the index still has it; empty when it does not."""
    row = connection.execute(_KEY, (revision,)).fetchone()
    return row[0] if row else ""


def told(path: Path, found: list[RecordDamaged]) -> str:
    """The records by name; one line."""
    named = [str(error) for error in found[:MOST_NAMED]]
    more = [f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return f"{path}: {'; '.join([*named, *more])}"


def _is_json(value: bytes) -> bool:
    try:
        msgspec.json.decode(value, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True
