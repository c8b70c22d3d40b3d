"""One suite for both stores: what the protocol promises."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from podfit.store import hub
from podfit.store.logged import LoggedStore
from podfit.store.memory import memory_store
from podfit.store.protocol import Change, Compacted, KeyExists, Record, RevisionConflict, SlowWatcher, StoreError
from podfit.store.sqlite import SqliteLog, StoreInUse, sqlite_store


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LoggedStore]:
    made = memory_store() if request.param == "memory" else sqlite_store(tmp_path / "store.db")
    yield made
    await made.close()


def told(changes: list[Change]) -> list[tuple[str, bytes, bool]]:
    return [(change.record.key, change.record.value, change.deleted) for change in changes]


async def collect(store: LoggedStore, prefix: str, *, after: int, count: int) -> list[Change]:
    found: list[Change] = []
    watch = store.watch(prefix, after=after)
    try:
        async with asyncio.timeout(5):
            async for batch in watch:
                found += batch
                if len(found) >= count:
                    return found
    finally:
        watch.close()
    raise AssertionError("the watch ended early")


async def test_a_key_lives_from_create_to_delete(store: LoggedStore) -> None:
    made = await store.create("/a", b"1")
    assert made.create_revision == made.mod_revision == store.revision
    changed = await store.update("/a", b"2", expected=made.mod_revision)
    assert (changed.create_revision, changed.mod_revision) == (made.create_revision, made.mod_revision + 1)
    assert await store.get("/a") == changed
    gone = await store.delete("/a", expected=changed.mod_revision)
    assert gone.value == b"2"
    assert gone.mod_revision == changed.mod_revision + 1
    assert await store.get("/a") is None
    again = await store.create("/a", b"3")
    assert again.create_revision == again.mod_revision == gone.mod_revision + 1


async def test_writes_expect_the_revision_they_saw(store: LoggedStore) -> None:
    made = await store.create("/a", b"1")
    with pytest.raises(KeyExists):
        await store.create("/a", b"x")
    newer = await store.update("/a", b"2", expected=made.mod_revision)
    with pytest.raises(RevisionConflict) as refused:
        await store.update("/a", b"x", expected=made.mod_revision)
    assert refused.value.current == newer
    with pytest.raises(RevisionConflict):
        await store.delete("/a", expected=made.mod_revision)
    with pytest.raises(RevisionConflict) as refused:
        await store.update("/missing", b"x", expected=1)
    assert refused.value.current is None


async def test_of_writers_that_saw_the_same_revision_one_wins(store: LoggedStore) -> None:
    made = await store.create("/a", b"0")
    tries = [store.update("/a", str(n).encode(), expected=made.mod_revision) for n in range(8)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert [isinstance(result, RevisionConflict) for result in results].count(True) == 7
    current = await store.get("/a")
    assert current is not None
    assert current.mod_revision == made.mod_revision + 1


async def test_lists_are_ordered_paged_and_prefixed(store: LoggedStore) -> None:
    for key in ("/p/b", "/p/a", "/q/a", "/p/c"):
        await store.create(key, key.encode())
    page = await store.list("/p/", limit=2)
    assert [record.key for record in page.records] == ["/p/a", "/p/b"]
    assert (page.remaining, page.revision) == (1, store.revision)
    rest = await store.list("/p/", after="/p/b", limit=2)
    assert [record.key for record in rest.records] == ["/p/c"]
    assert rest.remaining == 0


async def test_a_list_at_an_old_revision_shows_the_store_of_then(store: LoggedStore) -> None:
    a = await store.create("/a", b"1")
    b = await store.create("/b", b"1")
    then = store.revision
    await store.update("/a", b"2", expected=a.mod_revision)
    await store.delete("/b", expected=b.mod_revision)
    await store.create("/c", b"1")
    page = await store.list("/", revision=then, limit=1)
    assert [(record.key, record.value) for record in page.records] == [("/a", b"1")]
    assert page.remaining == 1
    rest = await store.list("/", revision=then, after="/a")
    assert [(record.key, record.value) for record in rest.records] == [("/b", b"1")]


async def test_a_watch_continues_history_without_gap(store: LoggedStore) -> None:
    a = await store.create("/w/a", b"1")
    await store.create("/other", b"1")
    changed = await store.update("/w/a", b"2", expected=a.mod_revision)
    watching = asyncio.create_task(collect(store, "/w/", after=a.mod_revision, count=3))
    await asyncio.sleep(0)
    await store.create("/w/b", b"1")
    await store.delete("/w/a", expected=changed.mod_revision)
    found = await watching
    assert told(found) == [("/w/a", b"2", False), ("/w/b", b"1", False), ("/w/a", b"2", True)]
    assert found[0].previous == a
    assert found[1].previous is None
    assert found[2].previous == changed


async def test_compacted_history_is_refused(store: LoggedStore) -> None:
    a = await store.create("/a", b"1")
    a = await store.update("/a", b"2", expected=a.mod_revision)
    await store.create("/b", b"1")
    await store.compact(store.revision)
    with pytest.raises(Compacted) as refused:
        store.watch("/", after=a.mod_revision - 1)
    assert refused.value.revision == store.compacted
    with pytest.raises(Compacted):
        await store.list("/", revision=a.mod_revision)
    assert [record.key for record in (await store.list("/")).records] == ["/a", "/b"]
    await store.delete("/a", expected=a.mod_revision)
    found = await collect(store, "/", after=store.compacted, count=1)
    assert told(found) == [("/a", b"2", True)]


async def test_a_slow_watcher_is_dropped(store: LoggedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BEHIND", 3)
    watch = store.watch("/", after=store.revision)
    for number in range(5):
        await store.create(f"/{number}", b"")
    with pytest.raises(SlowWatcher):
        await anext(watch)


async def test_a_closed_watch_ends(store: LoggedStore) -> None:
    watch = store.watch("/", after=store.revision)
    waiting = asyncio.create_task(collect_all(watch))
    await asyncio.sleep(0)
    watch.close()
    assert await waiting == []


async def collect_all(watch: hub.HubWatch) -> list[Change]:
    return [change async for batch in watch for change in batch]


async def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = sqlite_store(path)
    a = await store.create("/a", b"1")
    kept = await store.update("/a", b"2", expected=a.mod_revision)
    b = await store.create("/b", b"1")
    gone = await store.delete("/b", expected=b.mod_revision)
    await store.close()
    store = sqlite_store(path)
    try:
        assert store.revision == gone.mod_revision
        assert list((await store.list("/")).records) == [kept]
        assert told(await collect(store, "/", after=a.mod_revision, count=3)) == [
            ("/a", b"2", False), ("/b", b"1", False), ("/b", b"1", True),
        ]  # fmt: skip
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        await store.close()


async def test_a_revision_is_never_used_twice(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = sqlite_store(path)
    a = await store.create("/a", b"1")
    gone = await store.delete("/a", expected=a.mod_revision)
    await store.compact(store.revision)
    await store.close()
    store = sqlite_store(path)
    try:
        assert (await store.create("/a", b"1")).mod_revision > gone.mod_revision
        assert store.compacted == gone.mod_revision
    finally:
        await store.close()


async def test_a_second_process_is_refused(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "store.db")
    try:
        with pytest.raises(StoreInUse):
            sqlite_store(tmp_path / "store.db")
    finally:
        await store.close()


@pytest.mark.parametrize("failing", [1, 2])
async def test_a_failed_commit_refuses_its_writes_and_all_that_built_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    store = sqlite_store(tmp_path / "store.db")
    real, calls = SqliteLog.append, 0

    def full(log: SqliteLog, changes: list[Change]) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise StoreError("database or disk is full")
        real(log, changes)

    monkeypatch.setattr(SqliteLog, "append", full)
    try:
        first = asyncio.ensure_future(store.create("/a", b"1"))
        await asyncio.sleep(0)
        later = [asyncio.ensure_future(make()) for make in _writes(store)]
        results = await asyncio.gather(first, *later, return_exceptions=True)
        failed = [isinstance(result, StoreError) for result in results]
        assert failed == ([True] * 3 if failing == 1 else [False, True, True])
        again = await store.create("/z", b"1")
        assert again.mod_revision == store.revision
        keys = [record.key for record in (await store.list("/")).records]
        assert keys == (["/z"] if failing == 1 else ["/a", "/z"])
    finally:
        await store.close()


def _writes(store: LoggedStore) -> list[Callable[[], Coroutine[Any, Any, Record]]]:
    return [lambda: store.create("/b", b"1"), lambda: store.create("/c", b"1")]
