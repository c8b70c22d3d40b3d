"""Stores over a store: what is told of a record is the same wherever it comes from; what is remembered has a bound."""

import pytest

from podfit.apiserver.registry.converting_store import ConvertingStore
from podfit.store.decoded_cache import Remembered
from podfit.store.memory import memory_store
from podfit.store.protocol import RevisionConflict


def upper(value: bytes) -> bytes:
    return value.upper()


def lower(value: bytes) -> bytes:
    return value.lower()


async def test_every_record_is_told_in_the_form_that_is_shown() -> None:
    raw = memory_store()
    store = ConvertingStore(raw, shown=upper, kept=lower)
    try:
        made = await store.create("/a", b"One")
        found, kept = await store.get("/a"), await raw.get("/a")
        assert found
        assert kept
        assert (made.value, found.value, kept.value) == (b"ONE", b"ONE", b"one")
        assert [record.value for record in (await store.list("/")).records] == [b"ONE"]
        await store.update("/a", b"Two", expected=made.mod_revision)
        with pytest.raises(RevisionConflict) as refused:
            await store.update("/a", b"Three", expected=made.mod_revision)
        assert refused.value.current is not None
        assert refused.value.current.value == b"TWO"
        watch = store.watch("/", after=0)
        changes = [*await anext(watch)]
        assert [(change.record.value, change.previous and change.previous.value) for change in changes] == [
            (b"ONE", None),
            (b"TWO", b"ONE"),
        ]
        watch.close()
    finally:
        await store.close()


async def test_a_retired_form_ends_its_watches_and_no_others() -> None:
    raw = memory_store()
    store = ConvertingStore(raw, shown=upper, kept=lower)
    try:
        theirs, other = store.watch("/", after=0), raw.watch("/", after=0)
        store.retire()
        with pytest.raises(StopAsyncIteration):
            await anext(theirs)
        await raw.create("/a", b"one")
        assert len(await anext(other)) == 1
    finally:
        await raw.close()


def test_what_is_remembered_is_bounded_in_bytes_and_what_was_not_asked_for_goes_first() -> None:
    made: list[str] = []
    remembered = Remembered(100)

    def value(name: str, size: int = 20) -> bytes:
        def make() -> bytes:
            made.append(name)
            return name.encode() * size

        return remembered.get(name, make)

    value("a"), value("b"), value("a"), value("c")
    assert remembered.size == 80
    value("a"), value("b")
    assert made == ["a", "b", "c", "b"]
    assert value("d", 500) == b"d" * 500  # more than there is room for
    assert remembered.size == 0
