"""The store's semantics over any durable log.

Writes are decided in the event loop, in order, against the head: what is durable plus what is on its way. They get their
revision there and join the next batch; one thread appends a batch at a time, so that all writes that arrived during one
fsync share the next. Readers and watchers see a write only once its batch is durable. When a batch fails, it and all that
was decided on top of it are refused, and the head falls back to what is durable.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from podfit.store.hub import Hub, HubWatch
from podfit.store.index import Index
from podfit.store.protocol import Change, Compacted, KeyExists, Page, Record, RevisionConflict, StoreError


class Log(Protocol):
    """Where changes are kept. Called from threads: `append` and `compact` from one, the others from another."""

    def append(self, changes: Sequence[Change]) -> None:
        """Make them durable, all or none. Raises StoreError."""

    def compact(self, revision: int) -> None: ...

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        """The records as they were at a revision."""

    def changes(self, prefix: str, after: int, until: int) -> Sequence[Change]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a log holds when it is opened."""

    records: Sequence[Record]
    revision: int
    compacted: int


@dataclass(frozen=True, slots=True)
class _Write:
    change: Change
    done: asyncio.Future[Record]


class LoggedStore:
    """Must be made inside a running event loop, and closed."""

    def __init__(self, log: Log, loaded: Loaded) -> None:
        self._log = log
        self._index = Index(loaded.records)
        self._compacted = loaded.compacted
        self._hub = Hub(loaded.revision, self._history)
        self._next = loaded.revision + 1
        self._head: dict[str, Change] = {}  # the last write of each key that has one on its way
        self._queue: list[_Write] = []
        self._committing: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._writer = ThreadPoolExecutor(1, "store-write")
        self._reader = ThreadPoolExecutor(1, "store-read")

    @property
    def revision(self) -> int:
        return self._hub.revision

    @property
    def compacted(self) -> int:
        return self._compacted

    async def get(self, key: str) -> Record | None:
        return self._index.get(key)

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        if not revision or revision == self.revision:
            return self._index.page(prefix, after=after, limit=limit, revision=self.revision)
        self._check_history(revision)
        return await self._loop.run_in_executor(
            self._reader, lambda: self._log.page(prefix, after=after, limit=limit, revision=revision)
        )

    async def create(self, key: str, value: bytes) -> Record:
        if self._current(key) is not None:
            raise KeyExists(key)
        return await self._write(Record(key, value, self._next, self._next), deleted=False, previous=None)

    async def update(self, key: str, value: bytes, *, expected: int) -> Record:
        current = self._expect(key, expected)
        return await self._write(
            Record(key, value, current.create_revision, self._next), deleted=False, previous=current
        )

    async def delete(self, key: str, *, expected: int) -> Record:
        current = self._expect(key, expected)
        gone = Record(key, current.value, current.create_revision, self._next)
        return await self._write(gone, deleted=True, previous=current)

    def watch(self, prefix: str, *, after: int) -> HubWatch:
        self._check_history(after)
        return self._hub.watch(prefix, after)

    async def compact(self, revision: int) -> None:
        revision = min(revision, self.revision)
        if revision > self._compacted:
            self._compacted = revision
            await self._loop.run_in_executor(self._writer, self._log.compact, revision)

    async def close(self) -> None:
        """Finish what was begun, end the watches, let go of the log."""
        while self._committing is not None:
            await asyncio.wait([self._committing])
            await asyncio.sleep(0)
        self._hub.close()
        self._writer.shutdown()
        self._reader.shutdown()
        self._log.close()

    def _current(self, key: str) -> Record | None:
        pending = self._head.get(key)
        if pending is None:
            return self._index.get(key)
        return None if pending.deleted else pending.record

    def _expect(self, key: str, expected: int) -> Record:
        current = self._current(key)
        if current is None or current.mod_revision != expected:
            raise RevisionConflict(current)
        return current

    def _check_history(self, revision: int) -> None:
        if revision < self._compacted:
            raise Compacted(self._compacted)

    def _write(self, record: Record, *, deleted: bool, previous: Record | None) -> asyncio.Future[Record]:
        self._next += 1
        self._head[record.key] = change = Change(deleted, record, previous)
        write = _Write(change, self._loop.create_future())
        self._queue.append(write)
        if self._committing is None:
            self._commit()
        return write.done

    def _commit(self) -> None:
        batch, self._queue = self._queue, []
        changes = [write.change for write in batch]
        self._committing = self._loop.run_in_executor(self._writer, self._log.append, changes)
        self._committing.add_done_callback(lambda done: self._committed(batch, changes, done))

    def _committed(self, batch: Sequence[_Write], changes: Sequence[Change], done: asyncio.Future[None]) -> None:
        self._committing = None
        error = done.exception()
        if error is not None:
            self._refuse(batch, error)
            return
        for change in changes:
            self._index.apply(change)
            if self._head.get(change.record.key) is change:
                del self._head[change.record.key]
        self._hub.publish(changes)
        for write in batch:
            if not write.done.done():
                write.done.set_result(write.change.record)
        if self._queue:
            self._commit()

    def _refuse(self, batch: Sequence[_Write], error: BaseException) -> None:
        refused, self._queue = [*batch, *self._queue], []
        self._head.clear()
        self._next = self.revision + 1
        for write in refused:
            if not write.done.done():
                write.done.set_exception(StoreError(f"not stored: {error}"))

    async def _history(self, prefix: str, after: int, until: int) -> Sequence[Change]:
        return await self._loop.run_in_executor(self._reader, self._log.changes, prefix, after, until)
