"""What only a file has: reopening, one owner, a schema, a disk that fills up."""

import asyncio
import logging
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from podfit.store.protocol import Change, Record, StoreUnavailable
from podfit.store.sqlite import StoreInUse, StoreUnusable, sqlite_store
from podfit.store.sqlite import file as file_module
from podfit.store.sqlite.file import open_file
from podfit.store.sqlite.log import LARGEST_INSERTED, SqliteLog, statements


async def test_everything_is_there_after_reopening(path: Path) -> None:
    store = sqlite_store(path)
    begin = store.revision
    a = await store.create("/a", b"1")
    kept = await store.update("/a", b"2", expected=a.mod_revision)
    b = await store.create("/b", b"1")
    gone = await store.delete("/b", expected=b.mod_revision)
    await store.close()
    store = sqlite_store(path)
    assert store.revision == gone.mod_revision
    assert (await store.list("/")).records == [kept]
    assert await anext(store.watch("/", after=begin)) == [
        Change(False, a, None),
        Change(False, kept, a),
        Change(False, b, None),
        Change(True, gone, b),
    ]
    await store.close()


async def test_a_revision_is_never_used_twice(path: Path) -> None:
    store = sqlite_store(path)
    a = await store.create("/a", b"1")
    gone = await store.delete("/a", expected=a.mod_revision)
    await store.compact(store.revision)
    await store.close()
    store = sqlite_store(path)
    assert store.compacted == store.revision == gone.mod_revision
    assert (await store.create("/a", b"1")).mod_revision == gone.mod_revision + 1
    await store.close()


def test_the_files_are_for_the_owner_only(path: Path) -> None:
    path.touch(mode=0o644)
    file = open_file(path)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {f"store.db{end}": 0o600 for end in ("", "-wal", "-shm", ".lock")}
    file.close()


HOLDER = """
import asyncio, signal, sys
from pathlib import Path
from podfit.store.sqlite import sqlite_store

async def main():
    store = sqlite_store(Path(sys.argv[1]))
    print("open", flush=True)
    signal.pause()

asyncio.run(main())
"""


def test_a_second_process_is_refused_until_the_first_is_dead(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreInUse, match=r"store\.db is open in another process"):
            sqlite_store(path)
        holder.kill()
    assert holder.returncode == -signal.SIGKILL
    open_file(path).close()


def _foreign_file(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)


def _foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (name)")


def _later_schema(path: Path) -> None:
    open_file(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_foreign_file, "file is not a database"),
        (_foreign_database, "is a database, but not a podfit store"),
        (_later_schema, "has schema 99, this podfit reads schema 1"),
    ],
)
def test_what_cannot_be_used_is_said_and_let_go(path: Path, make: Callable[[Path], None], message: str) -> None:
    make(path)
    for _ in range(2):  # the second time it would be StoreInUse if the first had kept the lock
        with pytest.raises(StoreUnusable, match=message):
            sqlite_store(path)


def _first_schema(path: Path) -> Record:
    """A file as the first version of podfit made it, with an object in it."""
    log = SqliteLog(open_file(path))
    made = Record("/a", b"1", 2, 2)
    log.append([Change(False, made, None)])
    log.close()
    return made


SECOND = "ALTER TABLE log ADD COLUMN note TEXT; UPDATE log SET note = 'old'"
THIRD = "CREATE TABLE extra (name TEXT)"


async def test_a_file_of_an_older_schema_is_brought_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _first_schema(path)
    monkeypatch.setattr(file_module, "UPGRADES", (SECOND, THIRD))
    for _ in range(2):  # the second time there is nothing to do
        opened = open_file(path)
        assert opened.writer.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == (3,)
        assert opened.writer.execute("SELECT key, value, note FROM log").fetchall() == [("/a", b"1", "old")]
        assert opened.writer.execute("SELECT * FROM extra").fetchall() == []
        opened.close()
    monkeypatch.setattr(file_module, "UPGRADES", (SECOND,))
    with pytest.raises(StoreUnusable, match="has schema 3, this podfit reads schema 2: a newer podfit wrote it"):
        open_file(path)
    assert made.value == b"1"


async def test_an_upgrade_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _first_schema(path)
    monkeypatch.setattr(file_module, "UPGRADES", (SECOND, "CREATE TABLE log (name TEXT)"))
    with pytest.raises(StoreUnusable, match="table log already exists"):
        open_file(path)
    monkeypatch.undo()
    store = sqlite_store(path)
    assert (await store.list("/")).records == [made]
    await store.close()


def test_history_is_bounded_however_long_it_is_written(path: Path) -> None:
    """A key that is written for ever, compacted now and then: the file stays as large as what can be asked for."""

    async def write() -> None:
        store = sqlite_store(path)
        record = await store.get("/a") or await store.create("/a", b"")
        for _ in range(50):
            record = await store.update("/a", bytes(20_000), expected=record.mod_revision)
        await store.compact(store.revision - 10)
        await store.close()

    sizes = []
    for _ in range(8):
        asyncio.run(write())
        sizes.append(path.stat().st_size)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM log").fetchone() == (11,)
    assert max(sizes) < 2 * 50 * 20_000, "one round of history and a little; eight rounds would be eight million bytes"


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="No such file or directory"):
        sqlite_store(tmp_path / "missing" / "store.db")


@contextmanager
def files_cannot_grow_beyond(size: int) -> Iterator[None]:
    """The kernel refuses this process's writes behind `size`, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_refuses_writes_keeps_reading_and_recovers(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    store = sqlite_store(path)
    first = await store.create("/a", b"1")
    second = await store.update("/a", b"2", expected=first.mod_revision)
    watch = store.watch("/", after=store.revision)
    with files_cannot_grow_beyond(256 * 1024):
        refused = [store.create("/large", bytes(2**20)), store.delete("/a", expected=second.mod_revision)]
        results = await asyncio.gather(*refused, return_exceptions=True)
        assert [type(result) for result in results] == [StoreUnavailable] * 2
        assert (await store.list("/")).records == [second]
        assert (await store.list("/", revision=first.mod_revision)).records == [first]
        assert store.revision == second.mod_revision
        small = await store.create("/small", b"fits")
    large = await store.create("/large", bytes(2**20))
    assert [change.record for change in [*await anext(watch), *await anext(watch)]] == [small, large]
    await store.close()
    store = sqlite_store(path)
    assert (await store.list("/")).records == [second, large, small]
    assert store.revision == large.mod_revision == second.mod_revision + 2
    await store.close()


async def test_a_compaction_that_fails_can_be_repeated(path: Path) -> None:
    store = sqlite_store(path)
    made = await store.create("/a", b"1")
    await store.update("/a", b"2", expected=made.mod_revision)
    with files_cannot_grow_beyond(0), pytest.raises(StoreUnavailable):
        await store.compact(store.revision)
    assert store.compacted == 0
    assert (await store.list("/", revision=made.mod_revision)).records == [made]
    await store.compact(store.revision)
    assert store.compacted == store.revision
    await store.close()


@pytest.mark.parametrize("lost", ["create", "update"])
def test_the_table_itself_refuses_a_lost_update(path: Path, lost: str) -> None:
    log = SqliteLog(open_file(path))
    made, newer = Record("/a", b"1", 2, 2), Record("/a", b"2", 2, 3)
    log.append([Change(False, made, None), Change(False, newer, made)])
    mistake = Record("/a", b"x", 4, 4)
    with pytest.raises(StoreUnavailable, match="UNIQUE constraint failed"):
        log.append([Change(False, mistake, None if lost == "create" else made)])
    assert log.load().records == [newer]
    other = Record("/b", b"", 4, 4)
    log.append([Change(False, other, None)])  # the failed transaction is over
    assert log.load().records == [newer, other]
    log.close()


def created(key: str, revision: int, size: int = 1) -> Change:
    return Change(False, Record(key, b"x" * size, revision, revision), None)


def test_a_batch_is_stored_whole_or_not_at_all(path: Path) -> None:
    log = SqliteLog(open_file(path))
    first = [created(f"/{number:02}", 2 + number, 1 if number % 3 else 200_000) for number in range(80)]
    log.append(first)
    assert log.load().records == [change.record for change in first]
    with pytest.raises(StoreUnavailable, match="UNIQUE constraint failed"):
        log.append([created("/new", 100), created("/07", 101)])
    assert log.load().records == [change.record for change in first]
    log.close()


def test_a_key_is_deleted_and_made_anew_in_one_batch(path: Path) -> None:
    log = SqliteLog(open_file(path))
    made, again = created("/a", 2), created("/a", 4)
    gone = Change(True, Record("/a", b"x", 2, 3), made.record)
    log.append([made, created("/b", 5)])
    log.append([gone, again, created("/c", 6)])
    assert log.load().records == [again.record, Record("/b", b"x", 5, 5), Record("/c", b"x", 6, 6)]
    assert log.changes("/a", 0, 9, 9) == [made, gone, again]
    log.close()


def test_several_rows_of_one_statement_are_small() -> None:
    sizes = [1, 2**20, 1, 1, *[10_000] * 100]
    made = statements([created(f"/{number}", 2 + number, size) for number, size in enumerate(sizes)])
    assert [row[0] for rows in made for row in rows] == [2 + number for number in range(len(sizes))]
    assert max(map(len, made)) > 2
    assert all(len(rows) == 1 or sum(len(row[-2]) for row in rows) <= LARGEST_INSERTED for rows in made)
