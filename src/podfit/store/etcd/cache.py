"""The watch cache: what is under the prefix, as the feed tells of it, for reads as fresh as if etcd were asked.

Who reads asks etcd for nothing but its newest revision, waits until the feed has come to it, and is answered from
memory (KEP-2340). One question serves all who wait for it: a question that is under way may be older than who comes
now, so these share the next. Where the feed does not come to that revision in time, because its stream broke or
because other programs write to the same etcd, etcd itself is read.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence

from podfit.net.supervisor import Supervisor
from podfit.store.index import Index
from podfit.store.protocol import Change, Record

LATE_SECONDS = 0.1
"""How long a read waits for the feed, which is a few milliseconds behind etcd, before it asks etcd."""


class WatchCache:
    """`newest` asks etcd for its revision. The feed tells of changes (`apply`) up to revisions (`reached`), and of a
    gap in them (`lose`), after which it brings all records anew (`load`), and then tells of what it has brought."""

    def __init__(self, records: Iterable[Record], revision: int, newest: Callable[[], Awaitable[int]]) -> None:
        self.revision = revision
        self._index: Index | None = Index(records)
        self._last = self._index
        self._ask = newest
        self._asked: asyncio.Task[int] | None = None
        self._waiting: asyncio.Task[int] | None = None
        self._moved = asyncio.Event()
        self._missed = 0
        self.supervisor = Supervisor("watch cache")

    @property
    def index(self) -> Index | None:
        """What was there at `revision`; None while that is not known, or known to be old."""
        return self._index if self.revision >= self._missed else None

    def apply(self, changes: Sequence[Change]) -> None:
        if self._index is not None:
            for change in changes:
                if change.record.mod_revision > self.revision:
                    self._index.apply(change)

    def reached(self, revision: int) -> None:
        self.revision = max(self.revision, revision)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def lose(self) -> None:
        self._index = None

    def load(self, records: Iterable[Record], revision: int) -> None:
        self._index = self._last = self._last.renewed(records)
        self.reached(revision)

    async def moved(self) -> None:
        """Until the feed has told of something."""
        await self._moved.wait()

    async def fresh(self) -> Index | None:
        """The index, when it shows all that was there when this was called; None when only etcd can tell. Raises
        StoreUnavailable when etcd does not answer."""
        newest = await self.newest()
        if self.revision < newest and self.index is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LATE_SECONDS):
                    while self.revision < newest:
                        await self.moved()
        if self.revision < newest:
            self._missed = max(self._missed, newest)
        return self.index

    async def newest(self) -> int:
        """etcd's revision, asked for after this was called."""
        if self._waiting is None:
            self._waiting = self.supervisor.hold(self._question(self._asked), name="newest revision")
        return await asyncio.shield(self._waiting)

    async def _question(self, before: asyncio.Task[int] | None) -> int:
        if before is not None and not before.done():
            await asyncio.wait((before,))
        self._asked, self._waiting = self._waiting, None
        return await self._ask()
