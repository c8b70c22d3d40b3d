"""The store over etcd, which several API servers may share.

Every read is as fresh as etcd (linearizable), so a client that wrote through one server reads its write through any
other: etcd tells its newest revision, and the watch cache answers when it has come to that (`cache`). Cache and watches
are fed from one watch of etcd (`feed`). Past states are read from etcd. A write is acknowledged when etcd has it and
the feed has come to it, so that within a server `revision` is never behind what it acknowledged.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import grpc.aio

from podfit.net.supervisor import Supervisor
from podfit.store.etcd import etcd_v3_pb2 as pb
from podfit.store.etcd.cache import WatchCache
from podfit.store.etcd.feed import Feed
from podfit.store.etcd.history import compacted_revision, history
from podfit.store.etcd.members import EtcdMembers, Unanswered
from podfit.store.etcd.messages import Keys, write
from podfit.store.etcd.snapshot import PART, Snapshot
from podfit.store.hub import Hub, HubWatch
from podfit.store.index import Index
from podfit.store.protocol import (
    About,
    Change,
    Compacted,
    Companion,
    CompanionConflict,
    FutureRevision,
    KeyExists,
    Page,
    Record,
    RevisionConflict,
    StoreError,
    StoreUnavailable,
    TooLarge,
)

logger = logging.getLogger(__name__)

SEEN_SECONDS = 1.0  # a write waits for its own feed, but no longer
ATTEMPTS = 3  # of a write that is not answered
LOOK_SECONDS = 10.0  # between looks whether the feed is behind, and how long it may then take


class EtcdStore:
    """`mark` is what the mark of the prefix says; `begin` is what there is when the store is opened."""

    def __init__(self, members: EtcdMembers, keys: Keys, *, mark: bytes, begin: Snapshot, compacted: int) -> None:
        self._members = members
        self._keys = keys
        self._mark = mark
        self._hub = Hub(begin.revision, self._history)
        self._cache = WatchCache(begin.records, begin.revision, self._newest)
        self._feed = Feed(members, keys, self._hub, self._cache, first=begin.revision, mark=mark)
        self._compacted = compacted
        self._compacting = asyncio.Lock()
        self._closed = False
        self._problem = ""
        self.supervisor = Supervisor("etcd")
        self.supervisor.watch(self._cache.supervisor)
        self.supervisor.run(self._feed.run(), name="events of etcd")
        self.supervisor.run(self._keep_up(), name="newest revision of etcd")

    @property
    def revision(self) -> int:
        return self._hub.revision

    @property
    def compacted(self) -> int:
        return self._compacted

    @property
    def healthy(self) -> bool:
        return self._members.answering and not self._closed

    @property
    def problem(self) -> str:
        return self._problem

    async def servers(self) -> Mapping[str, str]:
        return await self._members.health()

    async def retry(self) -> None:
        if self._problem:
            with contextlib.suppress(StoreError):
                await self._write_mark()
                self._problem = ""

    def stamp(self, prefix: str) -> int | None:
        index = self._cache.index
        return None if index is None else index.stamp(prefix)

    async def catch_up(self) -> None:
        await self._fresh()

    async def newest(self) -> int:
        self._check_open()
        return await self._cache.newest()

    async def _newest(self) -> int:
        request = pb.RangeRequest(key=self._keys.mark, keys_only=True)
        return int((await self._read("KV/Range", request, pb.RangeResponse)).header.revision)

    async def _fresh(self) -> Index | None:
        self._check_open()
        return await self._cache.fresh()

    async def get(self, key: str) -> Record | None:
        index = await self._fresh()
        if index is not None:
            return index.get(key)
        answer = await self._range(pb.RangeRequest(key=self._keys.outer(key)))
        return self._keys.record(answer.kvs[0]) if answer.kvs else None

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        if revision and revision < self._compacted:
            raise Compacted(self._compacted)
        index = await self._fresh() if not revision else None
        if index is not None:
            return index.page(prefix, after=after, limit=limit, revision=self._cache.revision)
        records: list[Record] = []
        while True:
            low, end = self._keys.range(prefix, after)
            part = min(PART, limit - len(records)) if limit else PART
            answer = await self._range(pb.RangeRequest(key=low, range_end=end, limit=part, revision=revision))
            records += map(self._keys.record, answer.kvs)
            revision = revision or answer.header.revision
            remaining = answer.count - len(answer.kvs)
            if not remaining or len(records) == limit:
                return Page(records, revision, remaining)
            after = records[-1].key

    async def create(self, key: str, value: bytes, *, along: Sequence[Companion] = ()) -> Record:
        return await self._write(key, value, None, along)

    async def update(
        self, key: str, value: bytes, *, expected: int, freeing: bool = False, along: Sequence[Companion] = ()
    ) -> Record:
        return await self._write(key, value, expected, along)

    async def delete(self, key: str, *, expected: int) -> Record:
        return await self._write(key, None, expected)

    def watch(self, prefix: str, *, after: int, about: About | None = None) -> HubWatch:
        self._check_open()
        if after < (known := max(self._compacted, self._feed.lost)):
            raise Compacted(known)
        return self._hub.watch(prefix, after, about)

    async def compact(self, revision: int) -> None:
        """Left out when another server has compacted since this one last did: one of them is enough."""
        async with self._compacting:
            self._check_open()
            revision = min(revision, await self.newest())
            found = await compacted_revision(self._members, self._keys)
            if found > self._compacted:
                self._compacted = found
                return
            if revision <= found:
                return
            try:
                await self._read("KV/Compact", pb.CompactionRequest(revision=revision), pb.CompactionResponse)
                self._compacted = revision
            except Compacted:
                self._compacted = await compacted_revision(self._members, self._keys)

    async def close(self) -> None:
        """Finish what was begun, end the watches, let go of etcd."""
        if self._closed:
            return
        self._closed = True
        await self.supervisor.finish()
        self._hub.close()
        await self.supervisor.stop()
        await self._cache.supervisor.stop()
        await self._members.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")

    async def _range(self, request: Any) -> Any:
        return await self._read("KV/Range", request, pb.RangeResponse)

    async def _read(self, method: str, request: Any, answer: Any) -> Any:
        self._check_open()
        try:
            return await self._members.read(method, request, answer)
        except grpc.aio.AioRpcError as error:
            raise await self._refusal(error) from error

    async def _refusal(self, error: grpc.aio.AioRpcError) -> StoreError:
        text = error.details() or ""
        if "required revision has been compacted" in text:
            self._compacted = max(self._compacted, await compacted_revision(self._members, self._keys))
            return Compacted(self._compacted)
        if "required revision is a future revision" in text:
            return FutureRevision(await self.newest())
        if "request is too large" in text or "message larger than max" in text:
            return TooLarge("etcd takes no request as large as this (its --max-request-bytes)")
        return StoreUnavailable(f"etcd: {text}")

    async def _write(
        self, key: str, value: bytes | None, expected: int | None, along: Sequence[Companion] = ()
    ) -> Record:
        """Goes on when the caller is cancelled: what was sent cannot be called back."""
        self._check_open()
        return await asyncio.shield(
            self.supervisor.hold(self._written(key, value, expected, along), name=f"write {key}")
        )

    async def _written(self, key: str, value: bytes | None, expected: int | None, along: Sequence[Companion]) -> Record:
        try:
            record = await self._swap(key, value, expected, along)
        except StoreUnavailable as error:
            self._problem = str(error)
            raise
        except (KeyExists, RevisionConflict, CompanionConflict):
            await self._fresh()  # whoever tries again reads what it lost to
            raise
        self._problem = ""
        with contextlib.suppress(TimeoutError):  # it is durable, whether or not the feed is on time
            async with asyncio.timeout(SEEN_SECONDS):
                await self._feed.reach(record.mod_revision)
        return record

    async def _swap(self, key: str, value: bytes | None, expected: int | None, along: Sequence[Companion]) -> Record:
        """An unanswered update or deletion is sent again: only one of the two can find the revision that it expects.

        A creation is not: the first could still be done after somebody has deleted what the second made.
        """
        companions = [(self._keys.outer(companion.key), companion.value, companion.expected) for companion in along]
        request, unanswered = write(self._keys.outer(key), value, expected, companions), None
        for _ in range(ATTEMPTS):
            try:
                answer = await self._members.write("KV/Txn", request, pb.TxnResponse)
            except grpc.aio.AioRpcError as error:
                raise await self._refusal(error) from error
            except Unanswered as error:
                logger.warning("etcd write unanswered key=%s reason=%s", key, error)
                unanswered = error
                if expected is None:
                    return self._ours(key, value, await self.get(key), error)
            else:
                return self._outcome(key, value, expected, answer, unanswered)
        raise _unknown(unanswered)

    def _outcome(
        self, key: str, value: bytes | None, expected: int | None, answer: Any, unanswered: Unanswered | None
    ) -> Record:
        result = answer.responses[-1]
        if not answer.succeeded:
            kvs = result.response_range.kvs
            current = self._keys.record(kvs[0]) if kvs else None
            if (current.mod_revision if current else None) == expected:
                raise CompanionConflict
            if unanswered is not None:
                return self._ours(key, value, current, unanswered)
            if expected is None:
                raise KeyExists(key)
            raise RevisionConflict(current)
        if value is None:
            old = result.response_delete_range.prev_kvs[0]
            return Record(key, old.value, old.create_revision, answer.header.revision)
        kv = result.response_range.kvs[0]
        return Record(key, value, kv.create_revision, kv.mod_revision)

    @staticmethod
    def _ours(key: str, value: bytes | None, current: Record | None, why: Unanswered) -> Record:
        """What is there, if it is what we wrote. Raises StoreUnavailable when that cannot be told."""
        if value is not None and current is not None and current.value == value:
            return current
        raise _unknown(why)

    async def _history(self, prefix: str, after: int, until: int, limit: int) -> Sequence[Change]:
        self._check_open()
        if after < self._compacted:
            raise Compacted(self._compacted)
        until = min(until, self._feed.last)
        return await history(self._members, self._keys, prefix, after=after, until=until, limit=limit)

    async def _keep_up(self) -> None:
        """Bring the feed to etcd's newest revision when other keys moved that on."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if await self.newest() > self.revision:
                    await self._write_mark()
            except StoreError as error:
                logger.warning("etcd cannot be asked error=%s", error)

    async def _write_mark(self) -> None:
        request = pb.PutRequest(key=self._keys.mark, value=self._mark)
        answer = await self._read("KV/Put", request, pb.PutResponse)  # writing it twice is harmless
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._feed.reach(answer.header.revision)
        except TimeoutError:
            self._feed.again()


def _unknown(why: Unanswered | None) -> StoreUnavailable:
    return StoreUnavailable(f"etcd did not say whether it was stored: {why}")
