"""Backups: consistent while the owner writes, refused when they are not whole, put back without history."""

import asyncio
import os
import sqlite3
import stat
import tarfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podfit.process.data import backup as module
from podfit.process.data.backup import back_up, check_target, restore
from podfit.process.data.data_dir import DataDir
from podfit.process.data.running_process import exclusive
from podfit.process.errors import MachineError, UsageError
from podfit.store.protocol import Compacted, Record
from podfit.store.sqlite import sqlite_store

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    where = DataDir.at(tmp_path / "data")
    where.pki.mkdir(parents=True)
    for name in module.KEYS:
        (where.root / name).write_text(f"secret of {name}")
    return where


async def _filled(data: DataDir) -> list[Record]:
    store = sqlite_store(data.store)
    made = [await store.create(f"/{number}", b"%d" % number) for number in range(5)]
    changed = await store.update("/0", b"changed", expected=made[0].mod_revision)
    await store.delete("/4", expected=made[4].mod_revision)
    await store.close()
    return [changed, *made[1:4]]


async def _contents(data: DataDir) -> tuple[int, int, list[Record]]:
    store = sqlite_store(data.store)
    records = list((await store.list("/")).records)
    facts = store.revision, store.compacted, records
    await store.close()
    return facts


def test_what_was_there_is_there_again_without_history(data: DataDir, tmp_path: Path) -> None:
    records = asyncio.run(_filled(data))
    file, other = tmp_path / "cluster.backup", DataDir.at(tmp_path / "other")
    made = back_up(data, file, keys=True, now=NOW)
    assert (made.objects, made.revision, made.taken) == (4, 8, "2026-01-02T03:04:05Z")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    done = restore(other, file, replace=False, now=NOW)
    assert (done.manifest, done.revision, done.aside) == (made, 8, None)
    assert asyncio.run(_contents(other)) == (8, 8, records)
    for name in module.KEYS:
        assert (other.root / name).read_text() == f"secret of {name}"
        assert stat.S_IMODE((other.root / name).stat().st_mode) == 0o600
    assert [path for path in tmp_path.rglob(".*") if path.is_dir()] == [], "nothing is left in between"


def test_watchers_of_before_are_told_that_their_history_is_gone(data: DataDir, tmp_path: Path) -> None:
    asyncio.run(_filled(data))
    other = DataDir.at(tmp_path / "other")
    back_up(data, tmp_path / "file", keys=True, now=NOW)
    restore(other, tmp_path / "file", replace=False, now=NOW)

    async def ask() -> None:
        store = sqlite_store(other.store)
        with pytest.raises(Compacted):
            store.watch("/", after=7)
        watch = store.watch("/", after=8)
        new = await store.create("/new", b"")
        assert [change.record for change in await anext(watch)] == [new]
        await store.close()

    asyncio.run(ask())


async def test_a_backup_under_load_is_one_moment(data: DataDir, tmp_path: Path) -> None:
    """Each step writes both keys, one after the other: a backup may have one step more of the first, never less."""
    store = sqlite_store(data.store)
    first, second = await store.create("/first", b"0"), await store.create("/second", b"0")
    done = asyncio.Event()

    async def load() -> None:
        nonlocal first, second
        number = 0
        while not done.is_set():
            number += 1
            first = await store.update("/first", b"%d" % number, expected=first.mod_revision)
            second = await store.update("/second", b"%d" % number, expected=second.mod_revision)

    writing = asyncio.create_task(load())
    revisions = []
    for turn in range(5):
        file, other = tmp_path / f"{turn}.backup", DataDir.at(tmp_path / f"{turn}")
        made = await asyncio.to_thread(back_up, data, file, keys=False, now=NOW)
        await asyncio.to_thread(restore, other, file, replace=False, now=NOW)
        revision, _, records = await _contents(other)
        numbers = [int(record.value) for record in records]
        assert revision == made.revision == max(record.mod_revision for record in records)
        assert numbers[0] - numbers[1] in (0, 1)
        revisions.append(revision)
    done.set()
    await writing
    await store.close()
    assert revisions == sorted(set(revisions)), "it was written meanwhile"


def test_keys_stay_where_they_are_when_asked(data: DataDir, tmp_path: Path) -> None:
    asyncio.run(_filled(data))
    made = back_up(data, tmp_path / "file", keys=False, now=NOW)
    assert set(made.parts) == {"store.db"}
    other = DataDir.at(tmp_path / "other")
    restore(other, tmp_path / "file", replace=False, now=NOW)
    assert not other.pki.exists()


def test_a_store_that_is_there_is_kept_and_its_revisions_are_not_given_out_again(data: DataDir, tmp_path: Path) -> None:
    records = asyncio.run(_filled(data))
    back_up(data, tmp_path / "file", keys=True, now=NOW)

    async def go_on() -> int:
        store = sqlite_store(data.store)
        revision = [await store.create(f"/later/{number}", b"") for number in range(9)][-1].mod_revision
        await store.close()
        return revision

    later = asyncio.run(go_on())
    with pytest.raises(MachineError, match="has a store already"):
        restore(data, tmp_path / "file", replace=False, now=NOW)
    done = restore(data, tmp_path / "file", replace=True, now=NOW)
    assert done.revision == later
    assert asyncio.run(_contents(data)) == (later, later, records)
    assert done.aside is not None
    assert (done.aside / "pki" / "ca.key").exists()
    assert len(asyncio.run(_contents(DataDir.at(done.aside)))[2]) == len(records) + 9


def test_a_restore_that_fails_half_way_changes_nothing(data: DataDir, tmp_path: Path) -> None:
    asyncio.run(_filled(data))
    back_up(data, tmp_path / "file", keys=True, now=NOW)
    other = DataDir.at(tmp_path / "other")
    other.root.mkdir()
    asyncio.run(_filled(other))
    before = asyncio.run(_contents(other))
    other.pki.write_text("no directory: the keys, which come after the store, have nowhere to go")
    with pytest.raises(MachineError, match="not restored"):
        restore(other, tmp_path / "file", replace=True, now=NOW)
    assert asyncio.run(_contents(other)) == before
    assert not list(other.root.glob("replaced-*"))


def test_over_a_running_cluster_nothing_is_restored(data: DataDir, tmp_path: Path) -> None:
    asyncio.run(_filled(data))
    back_up(data, tmp_path / "file", keys=True, now=NOW)
    with exclusive(data), pytest.raises(MachineError, match="is in use by"):
        restore(data, tmp_path / "file", replace=True, now=NOW)


def test_where_there_is_no_store_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="there is no store"):
        back_up(DataDir.at(tmp_path), tmp_path / "file", keys=True, now=NOW)
    assert list(tmp_path.iterdir()) == []


def _truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[content.index(b"changed")] ^= 1
    file.write_bytes(content)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _text(file: Path) -> None:
    file.write_text("apiVersion: v1\n" * 100)


def _foreign(file: Path) -> None:
    with tarfile.open(file, "w") as archive:
        archive.add(__file__, "store.db")


def _repacked(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """As a backup would be whose store was like this when it was taken."""

    def make(file: Path) -> None:
        folder = file.parent / "changed"
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")
        change(folder / "store.db")
        manifest = (folder / "backup.json").read_text()
        part = module._part(folder / "store.db")
        with tarfile.open(file) as archive:
            old = module._manifest(archive, file).parts["store.db"]
        manifest = manifest.replace(old.sha256, part.sha256).replace(str(old.size), str(part.size))
        (folder / "backup.json").write_text(manifest)
        with tarfile.open(file, "w") as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    archive.add(path, str(path.relative_to(folder)))

    return make


def _newer_schema(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE meta SET value = 99 WHERE name = 'schema'")


def _another_revision(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM sums WHERE rev = (SELECT MAX(rev) FROM log)")
        connection.execute("DELETE FROM log WHERE rev = (SELECT MAX(rev) FROM log)")


def _no_database(store: Path) -> None:
    store.write_bytes(b"not a database" * 100)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (_truncated, "is not a whole backup"),
        (_flipped, r"is damaged: store\.db is not what was backed up"),
        (_empty, "is not a whole backup"),
        (_text, "is not a whole backup"),
        (_foreign, "is not a backup of podfit"),
        (Path.unlink, "No such file"),
        (_repacked(_newer_schema), "schema 99, this podfit reads schema 1: a newer podfit wrote it"),
        (_repacked(_another_revision), "its store is at revision 7"),
        (_repacked(_no_database), "cannot be restored: .*file is not a database"),
    ],
)
def test_what_is_not_whole_is_refused_and_nothing_changed(
    data: DataDir, tmp_path: Path, harm: Callable[[Path], None], message: str
) -> None:
    records = asyncio.run(_filled(data))
    file = tmp_path / "file"
    back_up(data, file, keys=True, now=NOW)
    harm(file)
    with pytest.raises(MachineError, match=message):
        restore(data, file, replace=True, now=NOW)
    assert asyncio.run(_contents(data)) == (8, 0, records)


def test_a_backup_goes_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target, overwrite in ((tmp_path, True), (tmp_path / "file", False), (tmp_path / "no" / "file", False)):
        with pytest.raises(UsageError, match=str(target) if target.parent.is_dir() else "there is no directory"):
            check_target(target, overwrite=overwrite)
    check_target(tmp_path / "file", overwrite=True)


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="is not a regular file"):
        check_target(pipe, overwrite=True)
    assert pipe.is_fifo()
