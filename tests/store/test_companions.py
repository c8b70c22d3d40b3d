"""A write with companions: the updates of other keys that are made along with it, all or none."""

import asyncio

import pytest

from podfit.store.protocol import Companion, CompanionConflict, KeyExists, Record, RevisionConflict
from support.etcd import AnyStore


async def test_a_creation_and_its_companion_are_made_together(store: AnyStore) -> None:
    other = await store.create("/other", b"0")
    watch = store.watch("/", after=other.mod_revision)
    made = await store.create("/a", b"1", along=[Companion("/other", b"1", other.mod_revision)])
    assert (await store.get("/a")) == made
    changed = await store.get("/other")
    assert changed is not None
    assert (changed.value, changed.create_revision) == (b"1", other.create_revision)
    seen = list(await anext(watch))
    assert sorted(change.record.key for change in seen) == ["/a", "/other"]
    watch.close()


async def test_nothing_is_written_when_the_companion_was_written_since(store: AnyStore) -> None:
    other = await store.create("/other", b"0")
    newer = await store.update("/other", b"1", expected=other.mod_revision)
    with pytest.raises(CompanionConflict):
        await store.create("/a", b"1", along=[Companion("/other", b"2", other.mod_revision)])
    assert await store.get("/a") is None
    made = await store.create("/a", b"1")
    with pytest.raises(CompanionConflict):
        await store.update("/a", b"2", expected=made.mod_revision, along=[Companion("/gone", b"2", 1)])
    assert await store.get("/a") == made
    assert await store.get("/other") == newer


async def test_a_conflict_of_the_key_itself_is_told_first_and_leaves_the_companion(store: AnyStore) -> None:
    other, made = await store.create("/other", b"0"), await store.create("/a", b"0")
    stale = [Companion("/other", b"1", other.mod_revision)]
    with pytest.raises(KeyExists):
        await store.create("/a", b"1", along=stale)
    with pytest.raises(RevisionConflict):
        await store.update("/a", b"1", expected=made.mod_revision - 1, along=stale)
    assert await store.get("/other") == other
    assert await store.get("/a") == made


async def test_of_writers_with_the_same_companion_one_wins(store: AnyStore) -> None:
    other = await store.create("/other", b"0")
    tries = [
        store.create(f"/{number}", b"x", along=[Companion("/other", str(number).encode(), other.mod_revision)])
        for number in range(8)
    ]
    results = await asyncio.gather(*tries, return_exceptions=True)
    won = [result for result in results if isinstance(result, Record)]
    assert len(won) == 1
    assert [type(result) for result in results].count(CompanionConflict) == 7
    changed = await store.get("/other")
    assert changed is not None
    assert f"/{changed.value.decode()}" == won[0].key
