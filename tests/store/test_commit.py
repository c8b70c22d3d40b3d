"""Group commit over a log that the test holds back: who shares a commit, who sees what when, who bears a failure."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest

from podfit.net.supervisor import Supervisor
from podfit.store.log import Loaded
from podfit.store.logged import LoggedStore
from podfit.store.memory import MemoryLog
from podfit.store.protocol import Change, KeyExists, Record, RevisionConflict, StoreUnavailable
from support.clock import at_rest
from support.eventually import PATIENCE


class HeldLog(MemoryLog):
    """Every append waits to be told its outcome."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []
        self._begun = threading.Semaphore(0)
        self._answered = threading.Semaphore(0)
        self._failing = False

    def append(self, changes: Sequence[Change], *, freeing: bool = False) -> None:
        self.batches.append([change.record.key for change in changes])
        self._begun.release()
        self._answered.acquire()
        if self._failing:
            raise StoreUnavailable("the disk is full")
        super().append(changes)

    async def begun(self) -> None:
        """Until a batch is on its way to the disk."""
        assert await asyncio.to_thread(self._begun.acquire, timeout=5 * PATIENCE)

    def answer(self, *, failing: bool = False) -> None:
        self._failing = failing
        self._answered.release()


@pytest.fixture
def log() -> HeldLog:
    return HeldLog()


@pytest.fixture
async def store(log: HeldLog) -> AsyncIterator[LoggedStore]:
    made = LoggedStore(log, Loaded((), revision=1, compacted=0))
    yield made
    await made.close()


def creating(store: LoggedStore, *keys: str) -> list[asyncio.Task[Record]]:
    return [asyncio.create_task(store.create(key, b"")) for key in keys]


async def test_what_arrives_during_a_commit_shares_the_next(store: LoggedStore, log: HeldLog) -> None:
    writes = creating(store, "/a", "/b")
    await log.begun()
    for key in ("/c", "/d", "/e"):
        writes += creating(store, key)
        await at_rest()
    log.answer()
    await log.begun()
    log.answer()
    assert [(await write).mod_revision for write in writes] == [2, 3, 4, 5, 6]
    assert log.batches == [["/a", "/b"], ["/c", "/d", "/e"]]


async def test_nobody_learns_of_a_write_that_is_not_durable(store: LoggedStore, log: HeldLog) -> None:
    watch = store.watch("/", after=store.revision)
    seen = asyncio.ensure_future(anext(watch))
    (write,) = creating(store, "/a")
    (loser,) = creating(store, "/a")
    await log.begun()
    (late,) = creating(store, "/a")
    await at_rest()
    assert await store.get("/a") is None
    assert (await store.list("/")).records == []
    assert store.revision == 1
    assert not any(future.done() for future in (seen, write, loser, late))
    log.answer()
    assert [change.record for change in await seen] == [await write]
    for refused in (loser, late):
        with pytest.raises(KeyExists):
            await refused


async def test_a_failure_refuses_its_batch_and_nothing_else(store: LoggedStore, log: HeldLog) -> None:
    (a,) = creating(store, "/a")
    await log.begun()
    log.answer()
    first = await a
    watch = store.watch("/", after=store.revision)
    doomed = [*creating(store, "/b", "/b"), asyncio.create_task(store.delete("/a", expected=first.mod_revision))]
    await log.begun()
    (update,) = [asyncio.create_task(store.update("/a", b"2", expected=first.mod_revision))]
    (again,) = creating(store, "/b")
    await at_rest()
    log.answer(failing=True)
    await log.begun()
    log.answer()
    results = await asyncio.gather(*doomed, return_exceptions=True)
    assert [type(result) for result in results] == [StoreUnavailable] * 3
    assert [(await update).mod_revision, (await again).mod_revision] == [3, 4]
    assert [change.record for change in await anext(watch)] == [await update, await again]
    assert (await store.list("/")).records == [await update, await again]


async def test_writes_of_one_batch_are_decided_in_order(store: LoggedStore, log: HeldLog) -> None:
    (first,) = creating(store, "/a")
    await log.begun()
    log.answer()
    seen = (await first).mod_revision
    delete = asyncio.create_task(store.delete("/a", expected=seen))
    update = asyncio.create_task(store.update("/a", b"", expected=seen))
    create = asyncio.create_task(store.create("/a", b"new"))
    await log.begun()
    log.answer()
    assert (await delete).mod_revision == seen + 1
    with pytest.raises(RevisionConflict) as refused:
        await update
    assert refused.value.current is None
    assert (await create).mod_revision == seen + 2


async def test_a_writer_that_left_the_queue_writes_nothing(store: LoggedStore, log: HeldLog) -> None:
    (first,) = creating(store, "/a")
    await log.begun()
    left, stays = creating(store, "/left", "/stays")
    await at_rest()
    left.cancel()
    log.answer()
    await log.begun()
    log.answer()
    await asyncio.gather(first, stays)
    assert log.batches == [["/a"], ["/stays"]]


async def test_closing_waits_for_what_was_begun(store: LoggedStore, log: HeldLog) -> None:
    (first,) = creating(store, "/a")
    await log.begun()
    (second,) = creating(store, "/b")
    await at_rest()
    closing = asyncio.create_task(store.close())
    log.answer()
    await log.begun()
    assert not closing.done()
    log.answer()
    await closing
    assert [(await first).key, (await second).key] == ["/a", "/b"]


async def test_an_attempt_to_write_that_breaks_is_heard() -> None:
    """An error that no store raises: who watches the store ends, and writers are not left to try for ever."""

    class BrokenLog(MemoryLog):
        problem = "no space left"
        full = True

        def retry(self) -> None:
            raise ValueError("broken")

    watcher = Supervisor("test")
    store = LoggedStore(BrokenLog(), Loaded((), revision=1, compacted=0))
    watcher.watch(store.supervisor)
    with pytest.raises(StoreUnavailable):
        await store.create("/a", b"")
    with pytest.raises(ValueError, match="broken"):
        await asyncio.wait_for(watcher.failure(), 5)
