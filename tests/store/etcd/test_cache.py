"""The watch cache: one question to etcd for all who wait, memory for what the feed has told, etcd for the rest."""

import asyncio

import pytest

from podfit.store.etcd import cache as module
from podfit.store.etcd.cache import WatchCache
from podfit.store.protocol import Change, Record, StoreUnavailable
from support.clock import at_rest


class Etcd:
    """Its answers come when they are let."""

    def __init__(self) -> None:
        self.revision, self.asked, self.let = 1, 0, asyncio.Event()
        self.let.set()
        self.down = False

    async def newest(self) -> int:
        self.asked += 1
        revision = self.revision
        await self.let.wait()
        if self.down:
            raise StoreUnavailable("nobody answers")
        return revision


def record(key: str, revision: int) -> Record:
    return Record(key, b"", revision, revision)


def written(cache: WatchCache, key: str, revision: int) -> None:
    cache.apply([Change(False, record(key, revision), None)])
    cache.reached(revision)


@pytest.fixture
async def etcd() -> Etcd:
    return Etcd()


@pytest.fixture
async def cache(etcd: Etcd) -> WatchCache:
    return WatchCache([record("/a", 1)], 1, etcd.newest)


async def test_who_comes_while_a_question_is_under_way_shares_the_next(etcd: Etcd, cache: WatchCache) -> None:
    etcd.let.clear()
    first = asyncio.create_task(cache.newest())
    await at_rest()
    etcd.revision = 7  # written after the first was asked
    later = [asyncio.create_task(cache.newest()) for _ in range(20)]
    await at_rest()
    etcd.let.set()
    assert await first == 1
    assert set(await asyncio.gather(*later)) == {7}
    assert etcd.asked == 2


async def test_a_question_that_fails_fails_for_its_askers_alone(etcd: Etcd, cache: WatchCache) -> None:
    etcd.down = True
    answers = await asyncio.gather(cache.newest(), cache.newest(), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
    etcd.down = False
    assert await cache.newest() == 1


async def test_who_is_cancelled_takes_the_answer_from_nobody(etcd: Etcd, cache: WatchCache) -> None:
    etcd.let.clear()
    one, other = asyncio.create_task(cache.newest()), asyncio.create_task(cache.newest())
    await at_rest()
    one.cancel()
    etcd.let.set()
    assert await other == 1


async def test_a_read_waits_until_the_feed_has_told_what_etcd_has(etcd: Etcd, cache: WatchCache) -> None:
    etcd.revision = 3
    reading = asyncio.create_task(cache.fresh())
    await at_rest()
    written(cache, "/b", 2)
    assert not reading.done()
    written(cache, "/c", 3)
    index = await reading
    assert index is not None
    assert [index.get(key) is not None for key in ("/a", "/b", "/c")] == [True] * 3


async def test_a_feed_that_is_late_is_not_waited_for_again_until_it_has_come(
    etcd: Etcd, cache: WatchCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LATE_SECONDS", 0)
    etcd.revision = 5
    assert await cache.fresh() is None
    assert cache.index is None, "what is known to be old stamps nothing"
    monkeypatch.setattr(module, "LATE_SECONDS", 3600)
    etcd.revision = 4
    assert await cache.fresh() is None
    cache.reached(5)
    assert await cache.fresh() is not None


async def test_after_a_gap_stamps_are_others_and_old_changes_are_passed_over(etcd: Etcd, cache: WatchCache) -> None:
    index = await cache.fresh()
    assert index is not None
    before = index.stamp("/")
    cache.lose()
    assert await cache.fresh() is None
    written(cache, "/lost", 2)
    cache.load([record("/b", 4)], 9)
    written(cache, "/b", 3)
    etcd.revision = 9
    index = await cache.fresh()
    assert index is not None
    assert index.stamp("/") != before
    assert (index.get("/a"), index.get("/lost"), index.get("/b")) == (None, None, record("/b", 4))
