"""Watches: from history, from the ring, live, and the joins between them."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest

from podfit.store import hub
from podfit.store.hub import HubWatch
from podfit.store.logged import LoggedStore
from podfit.store.protocol import About, Change, Compacted, Record, SlowWatcher
from podfit.store.sqlite import log
from support.etcd import AnyStore
from support.eventually import PATIENCE


async def read(watch: HubWatch, count: int) -> list[Change]:
    found: list[Change] = []
    async with asyncio.timeout(5 * PATIENCE):
        while len(found) < count:
            found += await anext(watch)
    return found


def keys(changes: Sequence[Change]) -> list[str]:
    return [change.record.key for change in changes]


@pytest.fixture
def from_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ring, and history in pages of two."""
    monkeypatch.setattr(hub, "RECENT", 0)
    monkeypatch.setattr(hub, "HISTORY_PAGE", 2)


@pytest.mark.parametrize("ring", [True, False])
async def test_each_change_comes_once_with_what_it_replaced(
    store: AnyStore, ring: bool, request: pytest.FixtureRequest
) -> None:
    if not ring:
        request.getfixturevalue("from_the_log")
    begin = store.revision
    a1 = await store.create("/w/a", b"1")
    await store.create("/other", b"1")
    a2 = await store.update("/w/a", b"2", expected=a1.mod_revision)
    gone = await store.delete("/w/a", expected=a2.mod_revision)
    again = await store.create("/w/a", b"3")
    watch = store.watch("/w/", after=begin)
    live = await store.update("/w/a", b"4", expected=again.mod_revision)
    assert await read(watch, 5) == [
        Change(False, a1, None),
        Change(False, a2, a1),
        Change(True, gone, a2),
        Change(False, again, None),
        Change(False, live, again),
    ]
    assert watch.revision == store.revision


@pytest.mark.usefixtures("from_the_log")
async def test_history_joins_the_present_while_it_is_being_read(store: AnyStore) -> None:
    begin = store.revision
    for number in range(5):
        await store.create(f"/w/{number}", b"")
    watch = store.watch("/w/", after=begin)
    found = list(await anext(watch))
    for number in range(5, 9):
        await store.create(f"/w/{number}", b"")
        found += await anext(watch)
    found += await read(watch, 9 - len(found))
    assert keys(found) == [f"/w/{number}" for number in range(9)]


@pytest.mark.usefixtures("from_the_log")
async def test_a_cancelled_reader_loses_nothing(store: AnyStore) -> None:
    begin = store.revision
    await store.create("/a", b"")
    watch = store.watch("/", after=begin)
    for turns in range(4):
        reading = asyncio.ensure_future(anext(watch))
        for _ in range(turns):
            await asyncio.sleep(0)
        if reading.done():
            assert keys(await reading) == ["/a"]
            return
        reading.cancel()
        await asyncio.wait([reading])
    assert keys(await read(watch, 1)) == ["/a"]


@pytest.mark.usefixtures("from_the_log")
async def test_history_that_is_compacted_before_it_was_read_is_no_gap(store: AnyStore) -> None:
    made = await store.create("/a", b"1")
    watch = store.watch("/", after=made.mod_revision - 1)
    await store.update("/a", b"2", expected=made.mod_revision)
    await store.compact(store.revision)
    with pytest.raises(Compacted):
        await anext(watch)


async def test_a_watch_from_before_the_compaction_is_refused(store: AnyStore) -> None:
    made = await store.create("/a", b"1")
    await store.compact(made.mod_revision)
    with pytest.raises(Compacted) as refused:
        store.watch("/", after=made.mod_revision - 1)
    assert refused.value.revision == store.compacted
    await store.delete("/a", expected=made.mod_revision)
    (change,) = await read(store.watch("/", after=store.compacted), 1)
    assert change.previous == made


async def test_a_watch_after_a_revision_still_ahead_waits_for_it(store: AnyStore) -> None:
    watch = store.watch("/", after=store.revision + 2)
    for name in "abcd":
        await store.create(name, b"")
    await store.create("/c", b"")
    assert keys(await read(watch, 1)) == ["/c"]


async def test_writers_of_one_batch_reach_a_watcher_as_one_batch(logged: LoggedStore) -> None:
    watch = logged.watch("/", after=logged.revision)
    made = await asyncio.gather(*(logged.create(f"/{number}", b"") for number in range(5)))
    assert [change.record for change in await anext(watch)] == made


async def test_what_a_bookmark_may_say(store: AnyStore) -> None:
    watch = store.watch("/w/", after=store.revision)
    begin = watch.revision
    made = await store.create("/w/a", b"")
    await store.create("/other", b"")
    assert watch.revision == begin  # /w/a is not handed out yet
    await anext(watch)
    assert watch.revision == store.revision > made.mod_revision


async def test_a_slow_watcher_is_dropped_and_others_are_not(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BEHIND", 3 * hub.OVERHEAD)
    slow, fast = (store.watch("/", after=store.revision) for _ in range(2))
    for number in range(5):
        await store.create(f"/{number}", b"")
        await anext(fast)
    for _ in range(2):
        with pytest.raises(SlowWatcher):
            await anext(slow)
    await store.create("/next", b"")
    assert keys(await anext(fast)) == ["/next"]


async def test_a_watcher_that_stays_a_little_behind_is_kept(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BEHIND", 2 * hub.OVERHEAD)
    watch = store.watch("/", after=store.revision)
    await store.create("/first", b"")
    for number in range(5):
        await store.create(f"/{number}", b"")
        assert len(await anext(watch)) == 1


async def test_a_large_change_alone_drops_nobody(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BEHIND", 10)
    watch = store.watch("/", after=store.revision)
    for name in ("/a", "/b"):
        await store.create(name, b"larger than ten")
        assert keys(await anext(watch)) == [name]


async def test_the_ring_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch, store: AnyStore) -> None:
    monkeypatch.setattr(hub, "RECENT", 3 * (hub.OVERHEAD + 100))
    asked: list[int] = []
    real = store._hub.history

    async def history(prefix: str, after: int, until: int, limit: int) -> Sequence[Change]:
        asked.append(after)
        return await real(prefix, after, until, limit)

    monkeypatch.setattr(store._hub, "history", history)
    begin = store.revision
    made = [await store.create(f"/{number}", bytes(100)) for number in range(5)]
    assert len(await read(store.watch("/", after=made[1].mod_revision), 3)) == 3
    assert asked == []
    assert len(await read(store.watch("/", after=begin), 5)) == 5
    assert asked == [begin]


@pytest.mark.parametrize("closes", ["watch", "store"])
async def test_a_closed_watch_ends(store: AnyStore, closes: str) -> None:
    watch = store.watch("/", after=store.revision)

    async def collect() -> list[Record]:
        return [change.record async for batch in watch for change in batch]

    reading = asyncio.ensure_future(collect())
    await asyncio.sleep(0)
    made = await store.create("/a", b"")
    if closes == "watch":
        watch.close()
    else:
        await store.close()
    assert await reading == [made]


@pytest.mark.usefixtures("from_the_log")
async def test_large_history_is_read_a_little_at_a_time(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "HISTORY_PAGE", 500)
    monkeypatch.setattr(log, "MOST_READ", 100)
    begin = store.revision
    names = [f"/w/{number}" for number in range(6)]
    for name in names:
        await store.create(name, b"x" * 60)
    watch = store.watch("/w/", after=begin)
    batches: list[list[str]] = []
    async with asyncio.timeout(5 * PATIENCE):
        while sum(map(len, batches)) < len(names):
            batches.append(keys(await anext(watch)))
    assert [key for batch in batches for key in batch] == names
    if isinstance(store, LoggedStore) and isinstance(store._log, log.SqliteLog):
        assert list(map(len, batches)) == [2, 2, 2]


def first_letters(change: Change) -> set[str]:
    records = [record for record in (change.previous, change.record) if record is not None]
    return {record.value.decode()[0] for record in records}


async def test_those_whom_a_change_is_about_are_told_first(logged: LoggedStore) -> None:
    """As the kubelet of a pod, before all who follow pods."""
    told: list[str] = []
    everybody = logged.watch("/w/", after=logged.revision)
    everybody.on_news(partial(told.append, "everybody"))
    concerned = logged.watch("/w/", after=logged.revision, about=About(first_letters, "a"))
    concerned.on_news(partial(told.append, "concerned"))
    await logged.create("/w/1", b"a")
    assert told == ["concerned", "everybody"]


async def test_watchers_about_a_value_are_told_of_what_is_about_it(store: AnyStore) -> None:
    """Of 1,000 kubelets one is told of a pod's change. Before and after count: what leaves is told of as well."""
    begin = store.revision
    about = {value: store.watch("/w/", after=begin, about=About(first_letters, value)) for value in ("a", "b")}
    asked = Counter[str]()
    for value, watch in about.items():
        watch.on_news(partial(asked.update, [value]))
    one = await store.create("/w/1", b"a")
    await store.create("/other", b"a")
    two = await store.create("/w/2", b"b")
    moved = await store.update("/w/1", b"b2", expected=one.mod_revision)
    await store.delete("/w/2", expected=two.mod_revision)
    assert keys(await read(about["a"], 2)) == ["/w/1", "/w/1"]
    assert keys(await read(about["b"], 3)) == ["/w/2", "/w/1", "/w/2"]
    assert about["a"].take() is None
    assert about["a"].revision == store.revision > moved.mod_revision
    assert asked["a"] <= 2
    about["a"].close()
    await store.create("/w/3", b"a")
    await store.create("/w/4", b"b")
    assert keys(await read(about["b"], 1)) == ["/w/4"]
    with pytest.raises(StopAsyncIteration):
        await anext(about["a"])
