"""`LoggedStore`: the store's semantics over any durable log.

Writes queue in the event loop. One batch at a time is decided, in order, against what is durable and what the batch
itself has decided so far, gets its revisions, and is appended by the writer thread; all that arrives during that fsync
shares the next. So nothing is ever decided on top of a write that may still fail: when an append fails, exactly its
batch is refused, and there is nothing to take back. Readers, watchers and losers of a conflict learn of a write only
once it is durable.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec
from msgspec.structs import replace

from podfit.net.supervisor import Supervisor
from podfit.store.hub import Hub, HubWatch
from podfit.store.index import Index
from podfit.store.log import Loaded, Log
from podfit.store.protocol import (
    About,
    Change,
    Compacted,
    Companion,
    CompanionConflict,
    DiskFull,
    FutureRevision,
    KeyExists,
    Page,
    Record,
    RevisionConflict,
    StoreError,
    StoreUnavailable,
)


class Write(msgspec.Struct, frozen=True):
    key: str
    value: bytes | None  # None deletes
    expected: int | None  # None creates
    freeing: bool  # is tried on a full disk too
    done: asyncio.Future[Record]
    along: Sequence[Companion] = ()
    tries: int = 1


class Batch(msgspec.Struct, frozen=True):
    changes: Sequence[Change]
    outcomes: Sequence[tuple[Write, Record | StoreError]]  # what each writer is told once the changes are durable


def decide(queue: Sequence[Write], index: Index, revision: int) -> Batch:
    """Compare and swap, in order: `revision` is the last one given out, `index` the state at it."""
    head: dict[str, Record | None] = {}
    changes: list[Change] = []
    outcomes: list[tuple[Write, Record | StoreError]] = []
    for write in queue:
        if write.done.done():
            continue  # cancelled while it waited
        try:
            made = _made(write, lambda key: head[key] if key in head else index.get(key), revision + len(changes) + 1)
        except StoreError as refusal:
            outcomes.append((write, refusal))
        else:
            for change in made:
                head[change.record.key] = None if change.deleted else change.record
            changes += made
            outcomes.append((write, made[0].record))
    return Batch(changes, outcomes)


def _made(write: Write, current: Callable[[str], Record | None], revision: int) -> list[Change]:
    """The write's change and its companions', the first of them with this revision."""
    changes = [_decide(write, current(write.key), revision)]
    for offset, companion in enumerate(write.along, 1):
        before = current(companion.key)
        if before is None or before.mod_revision != companion.expected:
            raise CompanionConflict
        record = Record(companion.key, companion.value, before.create_revision, revision + offset)
        changes.append(Change(False, record, before))
    return changes


def _decide(write: Write, current: Record | None, revision: int) -> Change:
    if write.expected is None:
        if current is not None:
            raise KeyExists(write.key)
        return Change(False, Record(write.key, write.value or b"", revision, revision), None)
    if current is None or current.mod_revision != write.expected:
        raise RevisionConflict(current)
    value = current.value if write.value is None else write.value
    return Change(write.value is None, Record(write.key, value, current.create_revision, revision), current)


logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

GROWTH = 4096  # bytes by which a write that is part of a deletion may enlarge a value
TRIES = 3  # of such a write on a full disk, each after some room was made
SWEEP = 1000  # rows forgotten at once; writes go in between

SMALL_SWEEP = 20  # on a full disk


class LoggedStore:
    """Must be made inside a running event loop, and closed."""

    def __init__(self, log: Log, loaded: Loaded, executor: type[ThreadPoolExecutor] = ThreadPoolExecutor) -> None:
        self._log = log
        self._index = Index(loaded.records)
        self._hub = Hub(loaded.revision, self._history)
        self._compacted = loaded.compacted
        self._compacting = asyncio.Lock()
        self._swept = True  # what was compacted is gone, too
        self._queue: list[Write] = []
        self._idle = asyncio.Event()  # no batch under way or about to be
        self._idle.set()
        self._closed = False
        self.supervisor = Supervisor("store")
        self._retrying: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._writer = executor(1, "store-write")
        self._reader = executor(1, "store-read")

    @property
    def revision(self) -> int:
        return self._hub.revision

    @property
    def compacted(self) -> int:
        return self._compacted

    @property
    def healthy(self) -> bool:
        return not self._closed

    @property
    def problem(self) -> str:
        return self._log.problem

    async def servers(self) -> Mapping[str, str]:
        return {"store": "closed" if self._closed else self.problem}

    async def retry(self) -> None:
        if not self.problem or self._closed:
            return
        await asyncio.shield(self._begin(self._retry, name="try to write"))

    def _begin(self, work: Callable[[], Coroutine[None, None, None]], *, name: str) -> asyncio.Task[None]:
        """The task that looks for room on the disk, of which there is one at a time."""
        if self._retrying is None or self._retrying.done():
            self._retrying = self.supervisor.begin(work(), name=name)
        return self._retrying

    async def _forget_all(self) -> None:
        """What was deleted takes room for as long as history is kept."""
        with suppress(StoreError):
            if await self._in(self._reader, self._log.obsolete, self.revision):
                await self.compact(self.revision)

    async def _retry(self) -> None:
        with suppress(StoreError):  # it is the problem still
            try:
                await self._in(self._writer, self._log.retry)
            except StoreError as error:
                if not isinstance(error, DiskFull) and not self._log.full:
                    raise
                await self._forget_all()
                await self._in(self._writer, self._log.retry)

    def stamp(self, prefix: str) -> int | None:
        return self._index.stamp(prefix)

    def catch_up(self) -> None:
        """Nobody else writes."""

    async def newest(self) -> int:
        return self.revision

    async def get(self, key: str) -> Record | None:
        return self._index.get(key)

    def holds(self, start: bytes) -> bool:
        """Whether a current value begins so."""
        records = self._index.page("", after="", limit=0, revision=0).records
        return any(record.value.startswith(start) for record in records)

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        if not revision or revision == self.revision:
            return self._index.page(prefix, after=after, limit=limit, revision=self.revision)
        if revision > self.revision:
            raise FutureRevision(self.revision)
        self._check_history(revision)
        page = await self._in(self._reader, self._log.page, prefix, after=after, limit=limit, revision=revision)
        self._check_history(revision)  # a compaction may have overtaken the read
        return page

    async def create(self, key: str, value: bytes, *, along: Sequence[Companion] = ()) -> Record:
        return await self._write(key, value, None, along=along)

    async def update(
        self, key: str, value: bytes, *, expected: int, freeing: bool = False, along: Sequence[Companion] = ()
    ) -> Record:
        if freeing and self.problem:
            current = self._index.get(key)
            freeing = current is not None and len(value) <= len(current.value) + GROWTH
        return await self._write(key, value, expected, freeing=freeing, along=along)

    async def delete(self, key: str, *, expected: int) -> Record:
        return await self._write(key, None, expected, freeing=True)

    def watch(self, prefix: str, *, after: int, about: About | None = None) -> HubWatch:
        self._check_open()
        self._check_history(after)
        return self._hub.watch(prefix, after, about)

    async def compact(self, revision: int) -> None:
        async with self._compacting:
            revision, before = min(revision, self.revision), self._compacted
            if revision > before:
                self._compacted = revision  # first: a read that overlaps the removal must notice
                try:
                    await self._freeing(self._log.compact, revision)
                except StoreError:
                    self._compacted = before
                    raise
            elif self._swept:
                return
            self._swept = False
            obsolete = await self._in(self._reader, self._log.obsolete, self._compacted)
            for start in range(0, len(obsolete), SWEEP):
                await self._forget(obsolete[start : start + SWEEP])
            self._swept = True

    async def _forget(self, revisions: Sequence[int]) -> None:
        try:
            await self._in(self._writer, self._log.forget, revisions)
        except DiskFull as error:
            if not error.room:
                raise
            for start in range(0, len(revisions), SMALL_SWEEP):
                await self._freeing(self._log.forget, revisions[start : start + SMALL_SWEEP])

    async def _freeing(self, call: Callable[[T], None], what: T) -> None:
        """Once more where the first found the disk full and some room was made."""
        try:
            await self._in(self._writer, call, what)
        except DiskFull as error:
            if not error.room:
                raise
            await self._in(self._writer, call, what)

    async def close(self) -> None:
        """Finish what was begun, end the watches, let go of the log."""
        if self._closed:
            return
        self._closed = True
        await self._idle.wait()
        if self._retrying is not None:
            await self._retrying
        self._hub.close()
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        self._writer.shutdown()
        self._reader.shutdown()
        self._log.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")

    def _check_history(self, revision: int) -> None:
        if revision < self._compacted:
            raise Compacted(self._compacted)

    def _in(
        self, thread: ThreadPoolExecutor, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        self._check_open()
        return self._loop.run_in_executor(thread, lambda: call(*args, **kwargs))

    async def _history(self, prefix: str, after: int, until: int, limit: int) -> Sequence[Change]:
        changes = await self._in(self._reader, self._log.changes, prefix, after, until, limit)
        self._check_history(after)
        return changes

    def _write(
        self,
        key: str,
        value: bytes | None,
        expected: int | None,
        *,
        freeing: bool = False,
        along: Sequence[Companion] = (),
    ) -> asyncio.Future[Record]:
        self._check_open()
        if self._log.full and not freeing:
            if self._log.room() or self._compacted < self.revision:
                self._begin(self._retry, name="try to write")
            raise StoreUnavailable(f"not stored: {self.problem}")
        key.encode()  # a lone surrogate would fail the whole batch that it joins
        write = Write(key, value, expected, freeing, self._loop.create_future(), along)
        self._queue.append(write)
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._commit)  # not at once: whoever writes in this turn of the loop can join
        return write.done

    def _commit(self) -> None:
        queue, self._queue = self._queue, []
        if any(write.tries > 1 for write in queue):  # without creations, for which a batch is refused as a whole
            self._queue = [write for write in queue if not write.freeing]
            queue = [write for write in queue if write.freeing]
        batch = decide(queue, self._index, self.revision)
        if not batch.changes:
            self._settle(batch)
            self._commit_rest()
            return
        appended = self._writer.submit(self._append, batch)
        if appended.done():  # by an executor without threads
            self._committed(batch, appended.result())
        else:  # one call into the loop tells of the end: a future there would take two more turns
            appended.add_done_callback(partial(self._told, batch))

    def _append(self, batch: Batch) -> Exception | None:
        """In the writer's thread. The error is the batch's: each of its writers is told."""
        try:
            freeing = all(write.freeing for write, _ in batch.outcomes)
            self._log.append(batch.changes, freeing=freeing)
        except Exception as error:  # noqa: BLE001
            return error
        return None

    def _told(self, batch: Batch, appended: "Future[Exception | None]") -> None:
        self._loop.call_soon_threadsafe(self._committed, batch, appended.result())

    def _committed(self, batch: Batch, error: Exception | None) -> None:
        if error is None:
            for change in batch.changes:
                self._index.apply(change)
            self._hub.publish(batch.changes)
            self._settle(batch)
        elif isinstance(error, DiskFull) and error.room:
            writes = [write for write, _ in batch.outcomes]
            again = [replace(write, tries=write.tries + 1) for write in writes if write.freeing and write.tries < TRIES]
            refused = [write for write in writes if not write.freeing or write.tries >= TRIES]
            self._queue = again + self._queue
            self._settle(Batch((), [(write, _refusal(error)) for write in refused]))
            if refused and not self._closed and self._compacted < self.revision:
                self._begin(self._forget_all, name="forget history")
        else:
            trace = None if isinstance(error, StoreError) else error
            logger.error("commit failed writes=%d error=%s", len(batch.outcomes), error, exc_info=trace)
            self._settle(Batch((), [(write, _refusal(error)) for write, _ in batch.outcomes]))
        self._commit_rest()

    def _commit_rest(self) -> None:
        if self._queue:
            self._loop.call_soon(self._commit)  # behind the writers just woken, so that their next writes go together
        else:
            self._idle.set()

    @staticmethod
    def _settle(batch: Batch) -> None:
        for write, outcome in batch.outcomes:
            if write.done.done():
                continue  # the writer was cancelled
            if isinstance(outcome, Record):
                write.done.set_result(outcome)
            else:
                write.done.set_exception(outcome)


def _refusal(error: Exception) -> StoreError:
    refusal = StoreUnavailable(f"not stored: {error}")
    refusal.__cause__ = error
    return refusal
