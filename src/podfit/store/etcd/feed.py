"""The one etcd watch that feeds all watchers of this process.

It follows the whole prefix, so its revision says up to where everything is known. Where other programs write other
keys of the same etcd, that revision would stand still while etcd's goes on, and what clients were told to continue from
would be compacted away under them. etcd tells of its progress by itself every ten minutes; in between, the mark of the
prefix is written again when the feed is found behind. (etcd can be asked for its progress, but before 3.4.25 the answer
may overtake changes.) A feed that then does not come to the mark hangs, and is begun anew at another member.

What it tells goes into the watch cache first: whoever hears of a change finds it there.

A stream that broke is resumed at the revision reached, never behind it: etcd refuses the former when it is compacted,
and only then is the latter complete. After a gap watchers are told that their history is gone, and read anew; so is
the cache.
"""

import asyncio
import logging
from typing import Any

import grpc.aio

from podfit.store.etcd.cache import WatchCache
from podfit.store.etcd.members import PAUSE_SECONDS, EtcdMember, EtcdMembers
from podfit.store.etcd.messages import Incomplete, Keys, watching
from podfit.store.etcd.snapshot import Snapshot, snapshot
from podfit.store.hub import Hub
from podfit.store.protocol import Compacted, StoreError

logger = logging.getLogger(__name__)


class Feed:
    """`first` is a revision of the mark: the store is known up to it, and something happened at it. `mark` is what the
    mark says."""

    def __init__(
        self, members: EtcdMembers, keys: Keys, hub: Hub, cache: WatchCache, *, first: int, mark: bytes
    ) -> None:
        self._members = members
        self._keys = keys
        self._hub = hub
        self._cache = cache
        self._mark = mark
        self._stream: Any = None
        self.last = first  # of the newest change or mark
        self.lost = 0  # what was before this revision is not known
        self._start = first + 1

    @property
    def revision(self) -> int:
        return self._hub.revision

    async def reach(self, revision: int) -> None:
        """Until everything up to the revision was published."""
        while self.revision < revision:
            await self._cache.moved()

    async def run(self) -> None:
        """Follow etcd, for ever."""
        while True:
            member = self._members.current
            try:
                unreachable = await member.connect()
                if not unreachable:
                    await self._follow(member)
                self._members.leave(member, unreachable or "its watch ended")
            except grpc.aio.AioRpcError as error:
                self._members.leave(member, error.details())
            except (Compacted, Incomplete) as gap:
                await self._skip(gap)
                continue
            self._start = self.revision
            await asyncio.sleep(PAUSE_SECONDS)

    def again(self) -> None:
        """The stream hangs: begin anew."""
        self._members.leave(self._members.current, "its watch hangs")
        if self._stream is not None:
            self._stream.cancel()

    async def _follow(self, member: EtcdMember) -> None:
        """Until the stream ends."""
        self._stream = member.watch()
        try:
            await self._stream.write(watching(self._keys.mark, self._keys.end, self._start))
            while (answer := await self._stream.read()) is not grpc.aio.EOF:
                if answer.canceled:
                    if answer.compact_revision:
                        raise Compacted(answer.compact_revision)
                    return
                if not answer.created:
                    self._take(answer)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # else it was `again`
        finally:
            self._stream.cancel()

    def _take(self, answer: Any) -> None:
        """Changes, or etcd's word that there were none up to a revision."""
        known = self.revision
        if answer.events:
            newest = answer.events[-1].kv.mod_revision
            new = [event for event in answer.events if event.kv.mod_revision > known]
            if changes := self._keys.changes(new):
                self._cache.apply(changes)
                self._hub.publish(changes)
            self.last = max(self.last, newest)
            self._move(newest)
        else:
            self._move(answer.header.revision)

    async def _skip(self, gap: Compacted | Incomplete) -> None:
        """Go on behind what is lost, with all records read anew."""
        logger.warning("etcd history lost after=%d until=%d", self.revision, gap.revision)
        self._cache.lose()
        self.lost = gap.revision
        self._hub.restart(gap.revision, Compacted(gap.revision))
        self._start = gap.revision + 1
        found = await self._all()
        self._cache.load(found.records, found.revision)

    async def _all(self) -> Snapshot:
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                return await snapshot(self._members, self._keys, self._mark)
            except (StoreError, grpc.aio.AioRpcError) as error:
                logger.warning("etcd cannot be read anew error=%s", error)

    def _move(self, revision: int) -> None:
        self._hub.advance(revision)
        self._cache.reached(self._hub.revision)
