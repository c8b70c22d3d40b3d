"""A store over another one, with converted values: encrypted, or of another version.

What is told of a record is one function, `_shown`, wherever a record comes from: a read, a write, a watch, or the
conflict that refused a write.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from podfit.store.protocol import About, Change, Companion, Page, Record, RevisionConflict, Store, Watch

TURN = 256
"""Records of a page that are converted in one turn of the event loop."""


class StoreLayer(ABC):
    """A Store. Subclasses say what is shown and what is kept."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @abstractmethod
    def _shown(self, record: Record) -> Record: ...

    @abstractmethod
    def _kept(self, key: str, value: bytes) -> bytes: ...

    def _written(self, record: Record, value: bytes) -> Record:
        """What is told of a record that was just kept of `value`."""
        return self._shown(record)

    @property
    def revision(self) -> int:
        return self._store.revision

    @property
    def compacted(self) -> int:
        return self._store.compacted

    @property
    def healthy(self) -> bool:
        return self._store.healthy

    @property
    def problem(self) -> str:
        return self._store.problem

    async def servers(self) -> Mapping[str, str]:
        return await self._store.servers()

    async def retry(self) -> None:
        await self._store.retry()

    def stamp(self, prefix: str) -> int | None:
        return self._store.stamp(prefix)

    def catch_up(self) -> Awaitable[None] | None:
        return self._store.catch_up()

    async def newest(self) -> int:
        return await self._store.newest()

    async def get(self, key: str) -> Record | None:
        found = await self._store.get(key)
        return self._shown(found) if found else None

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        page = await self._store.list(prefix, after=after, limit=limit, revision=revision)
        shown = list[Record]()
        for record in page.records:
            if shown and len(shown) % TURN == 0:
                await asyncio.sleep(0)
            shown.append(self._shown(record))
        return Page(shown, page.revision, page.remaining)

    def _companions(self, along: Sequence[Companion]) -> Sequence[Companion]:
        """The companions as they are kept."""
        return [
            Companion(companion.key, self._kept(companion.key, companion.value), companion.expected)
            for companion in along
        ]

    async def create(self, key: str, value: bytes, *, along: Sequence[Companion] = ()) -> Record:
        kept = self._kept(key, value)
        return self._written(await self._store.create(key, kept, along=self._companions(along)), value)

    async def update(
        self, key: str, value: bytes, *, expected: int, freeing: bool = False, along: Sequence[Companion] = ()
    ) -> Record:
        kept, companions = self._kept(key, value), self._companions(along)
        written = self._store.update(key, kept, expected=expected, freeing=freeing, along=companions)
        return self._written(await self._told(written), value)

    async def delete(self, key: str, *, expected: int) -> Record:
        return self._shown(await self._told(self._store.delete(key, expected=expected)))

    def watch(self, prefix: str, *, after: int, about: About | None = None) -> Watch:
        """Watches everything: what a change is about is known from the form that is shown."""
        return LayerWatch(self._store.watch(prefix, after=after), self._shown)

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def close(self) -> None:
        await self._store.close()

    async def _told(self, write: Awaitable[Record]) -> Record:
        try:
            return await write
        except RevisionConflict as error:
            raise RevisionConflict(self._shown(error.current) if error.current else None) from None


class LayerWatch:
    def __init__(self, watch: Watch, shown: Callable[[Record], Record]) -> None:
        self._watch = watch
        self._shown = shown

    @property
    def revision(self) -> int:
        return self._watch.revision

    def __aiter__(self) -> AsyncIterator[Sequence[Change]]:
        return self

    async def __anext__(self) -> Sequence[Change]:
        return [self._change(change) for change in await anext(self._watch)]

    @property
    def behind(self) -> bool:
        return self._watch.behind

    def take(self) -> Sequence[Change] | None:
        changes = self._watch.take()
        return None if changes is None else [self._change(change) for change in changes]

    def on_news(self, tell: Callable[[], None]) -> None:
        self._watch.on_news(tell)

    def close(self) -> None:
        self._watch.close()

    def _change(self, change: Change) -> Change:
        previous = self._shown(change.previous) if change.previous else None
        return Change(change.deleted, self._shown(change.record), previous)
