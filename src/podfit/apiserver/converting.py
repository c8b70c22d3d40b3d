"""A store whose values are shown in another form than they are kept in, such as another version of a kind."""

from collections.abc import AsyncIterator, Callable, Sequence
from weakref import WeakSet

from podfit.store.protocol import Change, Page, Record, Store, Watch

Convert = Callable[[bytes], bytes]


class ConvertingStore:
    """A Store between the two forms; `retire` ends its watches when nobody is to be shown this one any more."""

    def __init__(self, store: Store, *, shown: Convert, kept: Convert) -> None:
        self._store = store
        self._convert = shown
        self._kept = kept
        self._watches: WeakSet[_ConvertingWatch] = WeakSet()

    @property
    def revision(self) -> int:
        return self._store.revision

    @property
    def compacted(self) -> int:
        return self._store.compacted

    @property
    def healthy(self) -> bool:
        return self._store.healthy

    async def newest(self) -> int:
        return await self._store.newest()

    async def get(self, key: str) -> Record | None:
        found = await self._store.get(key)
        return self._shown(found) if found else None

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        page = await self._store.list(prefix, after=after, limit=limit, revision=revision)
        return Page([self._shown(each) for each in page.records], page.revision, page.remaining)

    async def create(self, key: str, value: bytes) -> Record:
        return self._shown(await self._store.create(key, self._kept(value)))

    async def update(self, key: str, value: bytes, *, expected: int) -> Record:
        return self._shown(await self._store.update(key, self._kept(value), expected=expected))

    async def delete(self, key: str, *, expected: int) -> Record:
        return self._shown(await self._store.delete(key, expected=expected))

    def watch(self, prefix: str, *, after: int) -> Watch:
        watch = _ConvertingWatch(self._store.watch(prefix, after=after), self._shown)
        self._watches.add(watch)
        return watch

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def close(self) -> None:
        await self._store.close()

    def retire(self) -> None:
        for watch in list(self._watches):
            watch.close()

    def _shown(self, record: Record) -> Record:
        value = self._convert(record.value)
        return Record(record.key, value, record.create_revision, record.mod_revision, record.stale)


class _ConvertingWatch:
    def __init__(self, watch: Watch, shown: Callable[[Record], Record]) -> None:
        self._watch = watch
        self._shown = shown

    @property
    def revision(self) -> int:
        return self._watch.revision

    def __aiter__(self) -> AsyncIterator[Sequence[Change]]:
        return self

    async def __anext__(self) -> Sequence[Change]:
        return [self._change(each) for each in await anext(self._watch)]

    def close(self) -> None:
        self._watch.close()

    def _change(self, change: Change) -> Change:
        previous = self._shown(change.previous) if change.previous else None
        return Change(change.deleted, self._shown(change.record), previous)
