"""A full disk: nothing is created, everything can be deleted, and room that comes back is found."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from podfit.store.logged import GROWTH
from podfit.store.protocol import Record, Store, StoreUnavailable
from podfit.store.sqlite import sqlite_store
from podfit.store.sqlite.log import SqliteLog
from support.eventually import eventually_async
from support.small_disk import small_disk

SIZE = 48 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, SIZE):
        yield folder


def fill(folder: Path) -> Path:
    """A file that takes all there is."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return ballast


async def opened(folder: Path) -> Store:
    """With its reserve, which is taken beside the start."""
    store = sqlite_store(folder / "store.db")

    async def is_taken() -> bool:
        return (folder / "store.reserve").exists() or (folder / "ballast").exists()

    await eventually_async(is_taken, within=20, what="the reserve is taken")
    return store


async def until_full(store: Store, size: int = 2000, *, prefix: str = "/") -> list[Record]:
    made: list[Record] = []
    while True:
        (done,) = await asyncio.gather(store.create(f"{prefix}{len(made):05}", bytes(size)), return_exceptions=True)
        if not isinstance(done, Record):
            assert isinstance(done, StoreUnavailable)
            assert str(done) == "not stored: the disk is full; objects can be deleted"
            return made
        made.append(done)


@pytest.mark.parametrize("by", ["objects", "another"])
async def test_everything_can_be_deleted_and_room_is_found_again(disk: Path, by: str) -> None:
    store = await opened(disk)
    made = [await store.create(f"/a{number:05}", bytes(2000)) for number in range(600)]
    if by == "another":
        fill(disk)
    made += await until_full(store, 2000 if by == "another" else 100_000)
    assert store.problem
    for record in made:
        await store.delete(record.key, expected=record.mod_revision)
        creation = store.create("/other", bytes(2000))  # it may take no room that deletions need
        (other,) = await asyncio.gather(creation, return_exceptions=True)
        if isinstance(other, Record):
            await store.delete("/other", expected=other.mod_revision)
    assert (await store.list("/")).records == []
    (disk / "ballast").unlink(missing_ok=True)
    await asyncio.to_thread(os.sync)  # its blocks are free when the file system's journal has it
    await store.compact(store.revision)
    await store.retry()
    assert store.problem == ""
    assert (disk / "store.reserve").exists()
    again = await until_full(store, 100_000)
    assert len(again) > 100
    for record in again:
        await store.delete(record.key, expected=record.mod_revision)
    await store.close()


@pytest.mark.parametrize("asked", ["by /readyz", "by a creation"])
@pytest.mark.parametrize("reserve", ["kept", "given up"])
async def test_what_was_deleted_makes_room_at_once(disk: Path, asked: str, reserve: str) -> None:
    """On a full disk history is forgotten as soon as somebody looks for room, not after minutes. The file stays as
    large as it was, so there may be no room beside it for the reserve."""
    store = await opened(disk)
    filled = await until_full(store, 100_000)
    if reserve == "given up":
        fill(disk)
    for record in filled:
        await store.delete(record.key, expected=record.mod_revision)
    assert (disk / "store.reserve").exists() is (reserve == "kept")
    made = 0

    async def many_more() -> bool:
        nonlocal made
        if asked == "by /readyz":
            await store.retry()
        with suppress(StoreUnavailable):
            while made <= 100:
                await store.create(f"/again-{made}", bytes(100_000))
                made += 1
        return made > 100

    await eventually_async(many_more, within=20, what="what was deleted makes room")
    assert store.problem == ""
    await store.close()


async def test_deletions_go_on_when_copying_comes_late(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of writes grows with each deletion. It may not take the room that copying it into the file needs."""
    for name, value in (("SMALL", 1 << 40), ("LARGE", 1 << 40), ("PAUSE", 1e6)):
        monkeypatch.setattr(f"podfit.store.sqlite.checkpoint.{name}", value)
    store = await opened(disk)
    filled = await until_full(store, 30_000)
    fill(disk)
    for record in filled:
        await store.delete(record.key, expected=record.mod_revision)
    assert (await store.list("/")).records == []
    await store.close()


async def test_forgetting_large_objects_needs_no_room(disk: Path) -> None:
    """SQLite overwrites what it deletes, which takes room for all of it once more."""
    store = await opened(disk)
    filled = [record for size in (900_000, 10_000, 100) for record in await until_full(store, size, prefix=f"/{size}/")]
    for record in filled:
        await store.delete(record.key, expected=record.mod_revision)
    for _ in range(10):
        await store.retry()
    assert store.problem == ""
    for number in range(20):
        await store.create(f"/again-{number}", bytes(900_000))
    await store.close()


async def test_compaction_goes_on_and_what_it_frees_is_used(disk: Path) -> None:
    store = await opened(disk)
    made = [await store.create(f"/a{number:05}", bytes(50_000)) for number in range(200)]
    ballast = fill(disk)
    made += await until_full(store)
    for record in made:
        await store.delete(record.key, expected=record.mod_revision)
    await store.compact(store.revision)
    assert store.compacted == store.revision
    ballast.unlink()
    await store.retry()
    before = (disk / "store.db").stat().st_size
    for number in range(100):
        await store.create(f"/b{number:05}", bytes(50_000))
    assert (disk / "store.db").stat().st_size <= before + (1 << 20)
    await store.close()


async def test_a_write_that_belongs_to_a_deletion_is_done_and_no_other(disk: Path) -> None:
    store = await opened(disk)
    made = await store.create("/kept", bytes(1000))
    fill(disk)
    await until_full(store)
    with pytest.raises(StoreUnavailable):
        await store.update("/kept", bytes(1000 + GROWTH), expected=made.mod_revision)
    with pytest.raises(StoreUnavailable):
        await store.update("/kept", bytes(1001 + GROWTH), expected=made.mod_revision, freeing=True)
    marked = await store.update("/kept", bytes(1000 + GROWTH), expected=made.mod_revision, freeing=True)
    await store.delete("/kept", expected=marked.mod_revision)
    await store.close()


async def test_a_deletion_in_the_batch_that_finds_the_disk_full_is_done(disk: Path) -> None:
    store = await opened(disk)
    made = await store.create("/kept", bytes(1000))
    fill(disk)
    deletion = store.delete("/kept", expected=made.mod_revision)
    creations = [store.create(f"/{number}", bytes(1 << 20)) for number in range(10)]
    done = await asyncio.gather(*creations[:5], deletion, *creations[5:], return_exceptions=True)
    assert [isinstance(record, StoreUnavailable) for record in done] == [True] * 5 + [False] + [True] * 5
    assert (await store.list("/")).records == []
    await store.close()


async def test_a_deletion_among_creations_without_end_is_done(disk: Path) -> None:
    """Whoever was refused writes again at once, so that each batch has something that does not fit."""
    store = await opened(disk)
    made = await store.create("/kept", bytes(1000))
    fill(disk)
    await until_full(store)
    left = 300

    async def go_on(number: int) -> None:
        nonlocal left
        while left:
            left -= 1
            with suppress(StoreUnavailable):
                await store.create(f"/{number}/{left}", bytes(2000))

    going = [asyncio.create_task(go_on(number)) for number in range(5)]
    await store.delete("/kept", expected=made.mod_revision)
    left = 0
    await asyncio.gather(*going)
    assert await store.get("/kept") is None
    await store.close()


async def test_it_opens_on_a_full_disk_and_deletes(disk: Path) -> None:
    store = await opened(disk)
    made = [await store.create(f"/a{number:05}", bytes(2000)) for number in range(300)]
    await store.close()
    fill(disk)
    again = await opened(disk)
    assert (await again.list("/")).records == made
    await until_full(again)
    for record in made:
        await again.delete(record.key, expected=record.mod_revision)
    assert len((await again.list("/a")).records) == 0
    await again.close()


async def test_a_start_on_a_full_disk_leaves_room_for_small_files(disk: Path) -> None:
    store = await opened(disk)
    await store.close()
    ballast = fill(disk)
    os.truncate(ballast, ballast.stat().st_size - (64 << 10))  # as much as SQLite needs to open the store
    again = await opened(disk)
    (disk / "user.kubeconfig").write_bytes(bytes(128 << 10))
    assert "the disk is full" in again.problem
    await again.close()


async def test_space_that_came_back_is_found_by_a_creation(disk: Path) -> None:
    store = await opened(disk)
    ballast = fill(disk)
    await until_full(store)
    ballast.unlink()
    await asyncio.gather(store.create("/first", b""), return_exceptions=True)  # it has the store look
    await store.retry()
    await store.create("/second", b"")
    assert store.problem == ""
    await store.close()


async def test_other_errors_are_a_problem_until_a_write_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sqlite_store(tmp_path / "store.db")

    class Broken:
        in_transaction = False

        def execute(self, *_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        executemany = execute

    log: SqliteLog = store._log  # type: ignore[assignment]  # it is SQLite here
    with monkeypatch.context() as patch:
        patch.setattr(
            log,
            "_file",
            log._file.__class__(
                **{name: getattr(log._file, name) for name in log._file.__struct_fields__} | {"writer": Broken()}
            ),
        )
        with pytest.raises(StoreUnavailable):
            await store.create("/a", b"")
        assert store.problem == f"{tmp_path}/store.db: disk I/O error"
        await store.retry()
        assert store.problem
    await store.retry()
    assert store.problem == ""
    await store.create("/a", b"")
    await store.close()
