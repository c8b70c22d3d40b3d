"""Records that the disk gives back otherwise than they were written: named at the start, and never served."""

import asyncio
import json
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from podfit.process.data.data_dir import DataDir
from podfit.process.data.state import unopened
from podfit.store.protocol import Record, RecordDamaged, StoreUnavailable
from podfit.store.sqlite import StoreDamaged, StoreUnusable, sqlite_store
from podfit.store.sqlite.backup import check_store, copy_store, forget_history
from podfit.store.sqlite.file import PAGE

Figure = Callable[[str, object], None]
OBJECTS = 120
TARGET = "/registry/pods/default/web-7"
HOLDS = b'"name":"web-7"'


def value(number: int, size: int = 700) -> bytes:
    return json.dumps({"kind": "Pod", "metadata": {"name": f"web-{number}"}, "spec": {"a": "x" * size}}).encode()


async def filled(path: Path) -> dict[str, Record]:
    """A store of pods, some of them updated or deleted; what is current."""
    store = sqlite_store(path)

    async def pod(number: int) -> None:
        made = await store.create(f"/registry/pods/default/web-{number}", value(number, 100 + 97 * (number % 30)))
        if number % 5 == 0:
            made = await store.update(made.key, value(number), expected=made.mod_revision)
        if number % 9 == 0:
            await store.delete(made.key, expected=made.mod_revision)

    await asyncio.gather(*map(pod, range(OBJECTS)))
    current = (await store.list("/")).records
    await store.close()
    return {record.key: record for record in current}


async def read(path: Path) -> tuple[dict[str, Record], Sequence[object]]:
    """What is current, and all of history."""
    store = sqlite_store(path)
    try:
        records = (await store.list("/")).records
        watch, changes = store.watch("/", after=1), list[object]()
        while watch.revision < store.revision:
            changes += await anext(watch)
        return {record.key: record for record in records}, changes
    finally:
        await store.close()


def rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


def spoil(path: Path, old: bytes, new: bytes) -> None:
    """In the file itself, where SQLite sees nothing wrong."""
    content = path.read_bytes()
    assert len(old) == len(new)
    assert old in content
    path.write_bytes(content.replace(old, new))


@pytest.fixture
async def whole(path: Path) -> dict[str, Record]:
    return await filled(path)


async def test_a_damaged_value_is_named_with_what_to_do(path: Path, whole: dict[str, Record]) -> None:
    spoil(path, b'"name": "web-7"', b'"name" \x00"web-7"')
    revision = whole[TARGET].mod_revision
    with pytest.raises(StoreDamaged, match=f"the record of {TARGET} at revision {revision} is damaged") as refused:
        sqlite_store(path)
    shutil.copy(path, path.parent / "store.db.kept")
    told = unopened(DataDir(path.parent), refused.value)
    assert "store.db cannot be used" in str(told)
    (way,) = [line for line in told.fix if "sqlite3" in line]
    for statement in way.partition("'")[2].rstrip("'").split(";")[:-1]:
        rows(path, statement)
    records, _ = await read(path)
    assert records == {key: record for key, record in whole.items() if key != TARGET}


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE log SET value = CAST(value || 'x' AS BLOB) WHERE key = '{key}'", TARGET),
        ("UPDATE log SET value = NULL WHERE key = '{key}'", TARGET),
        ("UPDATE log SET deleted = 1 WHERE key = '{key}'", TARGET),
        ("UPDATE log SET created = created - 1 WHERE key = '{key}'", TARGET),
        ("UPDATE log SET key = key || 'x' WHERE key = '{key}'", f"{TARGET}x"),
        ("UPDATE log SET previous = 1 WHERE key = '/registry/pods/default/web-5' AND previous", "web-5"),
        ("UPDATE log SET deleted = 0 WHERE key = '/registry/pods/default/web-9' AND deleted", "web-9"),
        ("DELETE FROM log WHERE key = '{key}'", "an unknown key"),
    ],
)
async def test_whatever_is_wrong_with_a_row(path: Path, whole: dict[str, Record], statement: str, named: str) -> None:
    assert TARGET in whole
    rows(path, statement.format(key=TARGET))
    for look in (sqlite_store, check_store):
        with pytest.raises(StoreUnusable, match=named):
            look(path)


async def test_damage_after_the_start_is_seen_where_history_is_read(path: Path) -> None:
    store = sqlite_store(path)
    first = await store.create("/a", b'{"a":1}')
    await store.update("/a", b'{"a":2}', expected=first.mod_revision)
    rows(path, f"UPDATE log SET value = CAST('{{' AS BLOB) WHERE rev = {first.mod_revision}")
    with pytest.raises(RecordDamaged, match=f"/a at revision {first.mod_revision}"):
        await store.list("/", revision=first.mod_revision)
    assert [record.value for record in (await store.list("/")).records] == [b'{"a":2}']
    await store.close()


async def test_a_backup_of_what_is_damaged_is_refused(path: Path, whole: dict[str, Record]) -> None:
    spoil(path, b'"name": "web-7"', b'"name" \x00"web-7"')
    with pytest.raises(StoreUnusable, match=f"{TARGET} at revision"):
        copy_store(path, path.with_name("copy.db"))
    assert not path.with_name("copy.db").exists()


# ------------------------------------------------------------------ older podfits

OLDER = ("DROP TABLE sums", "DELETE FROM meta WHERE name = 'summed'")


async def test_a_file_without_sums_is_taken_over(path: Path, whole: dict[str, Record]) -> None:
    for statement in OLDER:
        rows(path, statement)
    before = rows(path, "SELECT * FROM log")
    assert (await read(path))[0] == whole
    assert rows(path, "SELECT * FROM log") == before
    assert rows(path, "SELECT value FROM meta WHERE name = 'schema'") == [(1,)]
    assert len(rows(path, "SELECT * FROM sums")) == len(whole)
    rows(path, f"UPDATE log SET value = CAST('{{}}' AS BLOB) WHERE key = '{TARGET}'")
    with pytest.raises(StoreDamaged, match=TARGET):
        sqlite_store(path)


async def test_broken_json_of_an_older_podfit_is_seen(path: Path, whole: dict[str, Record]) -> None:
    assert TARGET in whole
    for statement in (*OLDER, f"UPDATE log SET value = CAST('{{\"a\":' AS BLOB) WHERE key = '{TARGET}'"):
        rows(path, statement)
    with pytest.raises(StoreDamaged, match=TARGET):
        sqlite_store(path)


async def test_there_and_back(path: Path, whole: dict[str, Record]) -> None:
    """An older podfit writes rows without sums, and forgets rows that have one; its statements as they are there."""
    newest = max(record.mod_revision for record in whole.values())
    old, created = whole[TARGET].mod_revision, whole[TARGET].create_revision
    revision = newest + 10
    for statement in (
        f"INSERT INTO log VALUES ({revision}, '{TARGET}', 0, {created}, {old}, CAST('{{}}' AS BLOB))",
        f"UPDATE meta SET value = {revision} WHERE name = 'revision'",
        f"UPDATE meta SET value = {revision} WHERE name = 'compacted'",
        f"DELETE FROM log WHERE rev = {old}",
    ):
        rows(path, statement)
    store = sqlite_store(path)
    found = await store.get(TARGET)
    assert found is not None
    assert (found.value, found.mod_revision) == (b"{}", revision)
    await store.close()
    check_store(path)
    revisions = {row[0] for row in rows(path, "SELECT rev FROM sums")}
    assert revision in revisions
    assert old not in revisions
    rows(path, f"DELETE FROM log WHERE rev = {revision}")  # now it is damage again
    with pytest.raises(StoreDamaged, match=f"at revision {revision}"):
        sqlite_store(path)


async def test_what_is_forgotten_has_no_sum(path: Path, whole: dict[str, Record]) -> None:
    store = sqlite_store(path)
    await store.compact(store.revision)
    await store.close()
    assert len(rows(path, "SELECT * FROM sums")) == len(rows(path, "SELECT * FROM log")) == len(whole)
    forget_history(path)
    store = sqlite_store(path)
    assert {record.key: record for record in (await store.list("/")).records} == whole
    await store.close()


# ------------------------------------------------------------------ at random


async def corrupted(seed: int, folder: Path, figure: Figure) -> None:
    """12 times some bytes anywhere in the file are others: it is refused, or everything is as it was written."""
    chance = random.Random(seed)
    whole = await filled(folder / "whole.db")
    original = await read(folder / "whole.db")
    pages = (folder / "whole.db").stat().st_size // PAGE
    for number in range(12):
        path = folder / f"{number}.db"
        content = bytearray((folder / "whole.db").read_bytes())
        start = PAGE * chance.randrange(pages) + chance.choice((0, chance.randrange(200), chance.randrange(PAGE)))
        size = chance.choice((1, 1, 4, 64, 1024))
        content[start : start + size] = chance.randbytes(len(content[start : start + size]))
        path.write_bytes(content)
        try:
            found = await read(path)
        except (StoreUnusable, StoreUnavailable, RecordDamaged) as error:
            figure("named" if "at revision" in str(error) else "refused by SQLite", 1)
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}, {number}: {size} bytes at {start}") from error
        assert found == original, f"seed {seed}, {number}: {size} bytes at {start}"
        assert found[0] == whole
        figure("no record touched", 1)


@pytest.mark.parametrize("seed", range(2))
async def test_bytes_that_are_others(seed: int, tmp_path: Path) -> None:
    await corrupted(seed, tmp_path, lambda *_: None)


@pytest.mark.campaign
async def test_bytes_that_are_others_many_times(tmp_path: Path, figure: Figure) -> None:
    """100 seeds, 12 times each: some bytes anywhere in a store's file are others. It is refused with the names of the
    records, or by SQLite, or all that is read, history too, is as it was written."""
    counted: dict[str, int] = {}

    def count(name: str, number: object) -> None:
        counted[name] = counted.get(name, 0) + 1

    for seed in range(100):
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            await corrupted(seed, Path(folder), count)
    for name, number in counted.items():
        figure(name, number)
