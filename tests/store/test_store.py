"""What the protocol promises of reads and writes, over every store."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.store import logged as logged_module
from podfit.store.index import prefix_end
from podfit.store.logged import LoggedStore
from podfit.store.protocol import (
    Compacted,
    FutureRevision,
    KeyExists,
    Page,
    Record,
    RevisionConflict,
    Store,
    StoreUnavailable,
    Watch,
)
from support.etcd import AnyStore


def test_it_is_a_store(store: AnyStore) -> None:
    as_store: Store = store
    as_watch: Watch = as_store.watch("/", after=store.revision)
    as_watch.close()


async def test_a_key_lives_from_create_to_delete(store: AnyStore) -> None:
    assert store.revision >= 1
    made = await store.create("/a", b"1")
    assert made.create_revision == made.mod_revision == store.revision
    changed = await store.update("/a", b"2", expected=made.mod_revision)
    assert (changed.create_revision, changed.mod_revision) == (made.create_revision, made.mod_revision + 1)
    assert await store.get("/a") == changed
    gone = await store.delete("/a", expected=changed.mod_revision)
    assert gone == Record("/a", b"2", made.create_revision, changed.mod_revision + 1)
    assert await store.get("/a") is None
    again = await store.create("/a", b"3")
    assert again.create_revision == again.mod_revision == gone.mod_revision + 1


async def test_writes_expect_the_revision_they_saw(store: AnyStore) -> None:
    made = await store.create("/a", b"1")
    with pytest.raises(KeyExists):
        await store.create("/a", b"x")
    newer = await store.update("/a", b"2", expected=made.mod_revision)
    with pytest.raises(RevisionConflict) as refused:
        await store.update("/a", b"x", expected=made.mod_revision)
    assert refused.value.current == newer
    with pytest.raises(RevisionConflict):
        await store.delete("/a", expected=made.mod_revision)
    for expected in (0, 1):
        with pytest.raises(RevisionConflict) as refused:
            await store.update("/missing", b"x", expected=expected)
        assert refused.value.current is None
    assert store.revision == newer.mod_revision


async def test_of_writers_that_saw_the_same_revision_one_wins(store: AnyStore) -> None:
    made = await store.create("/a", b"0")
    tries = [store.update("/a", str(n).encode(), expected=made.mod_revision) for n in range(8)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    current = await store.get("/a")
    assert [result for result in results if isinstance(result, Record)] == [current]
    conflicts = [result for result in results if isinstance(result, RevisionConflict)]
    assert [conflict.current for conflict in conflicts] == [current] * 7


async def test_lists_are_ordered_paged_and_prefixed(store: AnyStore) -> None:
    for key in ("/p/b", "/p/a", "/q/a", "/p/c", "/p", "/p0"):
        await store.create(key, key.encode())
    page = await store.list("/p/", limit=2)
    assert [record.key for record in page.records] == ["/p/a", "/p/b"]
    assert (page.remaining, page.revision) == (1, store.revision)
    rest = await store.list("/p/", after="/p/b", limit=2)
    assert [record.key for record in rest.records] == ["/p/c"]
    assert rest.remaining == 0
    assert (await store.list("/nothing/", limit=2)) == Page([], store.revision, 0)


async def test_a_list_at_an_old_revision_shows_the_store_of_then(store: AnyStore) -> None:
    for key in ("/p/a", "/p/b", "/p/c", "/q/a"):
        await store.create(key, b"then")
    then = store.revision
    wanted = (await store.list("/p/")).records
    await store.update("/p/a", b"now", expected=wanted[0].mod_revision)
    await store.delete("/p/b", expected=wanted[1].mod_revision)
    await store.create("/p/b", b"now")
    await store.create("/p/d", b"now")
    page = await store.list("/p/", revision=then, limit=1)
    assert (page.records, page.revision, page.remaining) == (wanted[:1], then, 2)
    assert (await store.list("/p/", revision=then, after="/p/a", limit=2)) == Page(wanted[1:], then, 0)
    assert (await store.list("/p/", revision=then)).records == wanted


async def test_a_revision_of_the_future_is_refused(store: AnyStore) -> None:
    with pytest.raises(FutureRevision) as refused:
        await store.list("/", revision=store.revision + 1)
    assert refused.value.current == store.revision


async def test_compaction_keeps_what_its_revision_shows(store: AnyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_module, "SWEEP", 1)
    a = await store.create("/a", b"1")
    a = await store.update("/a", b"2", expected=a.mod_revision)
    b = await store.create("/b", b"1")
    await store.delete("/b", expected=b.mod_revision)
    c = await store.create("/c", b"1")
    kept = store.revision
    await store.update("/a", b"3", expected=a.mod_revision)
    await store.compact(kept)
    assert store.compacted == kept
    assert list((await store.list("/", revision=kept)).records) == [a, c]
    with pytest.raises(Compacted) as refused:
        await store.list("/", revision=kept - 1)
    assert refused.value.revision == kept
    await store.compact(kept - 1)
    assert store.compacted == kept


async def test_compaction_stops_at_the_present(store: AnyStore) -> None:
    made = await store.create("/a", b"1")
    await store.compact(made.mod_revision + 100)
    assert store.compacted == store.revision == made.mod_revision


async def test_a_list_that_a_compaction_overtakes_is_refused(logged: LoggedStore) -> None:
    made = await logged.create("/a", b"1")
    await logged.update("/a", b"2", expected=made.mod_revision)
    listing = asyncio.ensure_future(logged.list("/", revision=made.mod_revision))
    compacting = asyncio.ensure_future(logged.compact(logged.revision))
    with pytest.raises(Compacted):
        await listing
    await compacting


async def test_large_values_pass_unchanged(store: AnyStore) -> None:
    value = bytes(range(256)) * 4 * 2**12  # 4 MB
    made = await store.create("/large", value)
    gone = await store.delete("/large", expected=made.mod_revision)
    assert gone.value == value
    assert (await store.list("/", revision=made.mod_revision)).records == [made]


async def test_a_key_that_is_not_unicode_harms_nobody(store: AnyStore) -> None:
    neighbour = asyncio.ensure_future(store.create("/a", b""))
    with pytest.raises(UnicodeEncodeError):
        await store.create("/\ud800", b"")
    assert await neighbour == await store.get("/a")


async def test_a_closed_store_refuses(store: AnyStore) -> None:
    writing = asyncio.ensure_future(store.create("/a", b""))
    await asyncio.sleep(0)
    await store.close()
    assert (await writing).key == "/a"  # it was begun before
    with pytest.raises(StoreUnavailable):
        await store.create("/b", b"")
    with pytest.raises(StoreUnavailable):
        store.watch("/", after=store.revision)


@given(st.text(max_size=3), st.text(max_size=5))
def test_prefix_end_is_the_bound_of_the_prefix(prefix: str, key: str) -> None:
    end = prefix_end(prefix)
    assert key.startswith(prefix) == (key >= prefix and (end is None or key < end))


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("", None), ("\U0010ffff", None), ("a\U0010ffff", "b"), ("\ud7ff", "\ue000"), ("/pods/", "/pods0")],
)
def test_prefix_end(prefix: str, end: str | None) -> None:
    assert prefix_end(prefix) == end
