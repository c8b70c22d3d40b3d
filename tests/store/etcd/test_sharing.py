"""Several stores, as of several API servers, on one etcd."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from podfit.store.etcd import store as module
from podfit.store.etcd.store import EtcdStore
from podfit.store.protocol import Change, Compacted, RevisionConflict, TooLarge
from support.etcd import fresh_prefix, open_etcd
from support.eventually import PATIENCE

pytestmark = pytest.mark.etcd


@pytest.fixture
async def pair(etcd_url: str) -> AsyncIterator[tuple[EtcdStore, EtcdStore]]:
    prefix = fresh_prefix()
    one, other = await open_etcd(etcd_url, prefix=prefix), await open_etcd(etcd_url, prefix=prefix)
    yield one, other
    await one.close()
    await other.close()


async def test_each_reads_at_once_what_the_other_wrote(pair: tuple[EtcdStore, EtcdStore]) -> None:
    one, other = pair
    for number in range(20):
        made = await one.create(f"/{number}", b"1")
        assert await other.newest() >= made.mod_revision
        assert await other.get(f"/{number}") == made
        changed = await other.update(f"/{number}", b"2", expected=made.mod_revision)
        assert (await one.list(f"/{number}")).records == [changed]
        with pytest.raises(RevisionConflict) as refused:
            await one.delete(f"/{number}", expected=made.mod_revision)
        assert refused.value.current == changed
        one, other = other, one


async def test_both_see_the_same_history(pair: tuple[EtcdStore, EtcdStore]) -> None:
    begin = pair[1].revision
    watches = [store.watch("/", after=begin) for store in pair]
    made = [await pair[number % 2].create(f"/{number}", b"") for number in range(10)]
    for watch in watches:
        seen: list[Change] = []
        while len(seen) < len(made):
            seen += await anext(watch)
        assert [change.record for change in seen] == made


async def test_a_page_of_one_goes_on_at_the_other(pair: tuple[EtcdStore, EtcdStore]) -> None:
    one, other = pair
    made = [await one.create(f"/{letter}", b"") for letter in "abcd"]
    page = await one.list("/", limit=2)
    await one.delete("/d", expected=made[3].mod_revision)
    rest = await other.list("/", after=page.records[-1].key, revision=page.revision)
    assert [*page.records, *rest.records] == made


async def test_one_of_them_compacts_and_the_other_takes_over(pair: tuple[EtcdStore, EtcdStore]) -> None:
    one, other = pair
    made = await one.create("/a", b"1")
    await one.update("/a", b"2", expected=made.mod_revision)
    middle, newest = made.mod_revision, one.revision
    await one.compact(middle)
    await other.compact(newest)  # somebody else did it this time
    assert (one.compacted, other.compacted) == (middle, middle)
    assert (await other.list("/", revision=middle)).records == [made]
    await other.compact(newest)  # nobody did since
    assert other.compacted == newest
    with pytest.raises(Compacted) as refused:
        await one.list("/", revision=middle)
    assert refused.value.revision == one.compacted == newest


async def test_bookmarks_go_on_when_other_keys_do(etcd_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    store, stranger = await open_etcd(etcd_url), await open_etcd(etcd_url)
    watch = store.watch("/", after=store.revision)
    made = await stranger.create("/elsewhere", b"")
    async with asyncio.timeout(5 * PATIENCE):
        await store._feed.reach(made.mod_revision)
    assert watch.revision >= made.mod_revision
    assert (await store.list("/", revision=watch.revision)).records == []
    await store.close()
    await stranger.close()


async def test_a_value_too_large_is_said(pair: tuple[EtcdStore, EtcdStore]) -> None:
    with pytest.raises(TooLarge):
        await pair[0].create("/large", bytes(9 * 2**20))
    assert await pair[0].get("/large") is None
