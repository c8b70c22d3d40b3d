"""The store as one version of a declared kind sees it.

Objects are stored in one version. Between versions nothing but the name changes (conversion strategy None), so a stored
object is shown under the version that was asked for, without what that version's schema does not declare, and with its
defaults: a default that came after an object was written is there when the object is read.
"""

from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakSet

import msgspec

from podfit.api.structural.fill import fill
from podfit.api.structural.prune import prune
from podfit.apiserver import stored
from podfit.apiserver.custom.kinds import CustomInfo
from podfit.store.protocol import Change, Page, Record, Store, Watch


class VersionedStore:
    """A Store whose records are all in one version; `retire` ends its watches when the kind is served no more so."""

    def __init__(self, store: Store, info: CustomInfo) -> None:
        self._store = store
        self._info = info
        self._watches: WeakSet[_VersionedWatch] = WeakSet()

    @property
    def revision(self) -> int:
        return self._store.revision

    @property
    def compacted(self) -> int:
        return self._store.compacted

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
        watch = _VersionedWatch(self._store.watch(prefix, after=after), self._shown)
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
        value = _converted(self._info, record.value)
        return Record(record.key, value, record.create_revision, record.mod_revision, record.stale)

    def _kept(self, value: bytes) -> bytes:
        info = self._info
        if info.version == info.stored_as:
            return value
        return _head(info, info.stored_as) + value[len(stored.head(info)) :]


def _head(info: CustomInfo, version: str) -> bytes:
    return f'{{"kind":"{info.kind}","apiVersion":"{info.group}/{version}","metadata":{{'.encode()


@lru_cache(maxsize=4096)
def _converted(info: CustomInfo, value: bytes) -> bytes:
    """Objects never change, so one conversion serves every reader."""
    document: dict[str, Any] = msgspec.json.decode(value)
    schema = info.type.declared.schema
    shown = fill(prune(document, schema), schema)
    head = {"kind": info.kind, "apiVersion": info.group_version, "metadata": document["metadata"]}
    return msgspec.json.encode(head | {name: each for name, each in shown.items() if name not in head})


class _VersionedWatch:
    def __init__(self, watch: Watch, shown: Any) -> None:
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
