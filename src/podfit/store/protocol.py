"""The store: a revisioned log of keys with watch, on one screen.

Keys are paths (`/registry/pods/default/web`), values opaque bytes. Every write gets the next revision of one counter;
a key remembers the revision that created it and the one that wrote it last. A write is acknowledged only when it would
survive the machine losing power. Implementations: `sqlite` (embedded default), `etcd` (shared by several API servers),
`memory` (tests).

    StoreError
     ├─ KeyExists         create of a key that is there
     ├─ RevisionConflict  update or delete whose expected revision is not the current one; `.current` is the record
     ├─ CompanionConflict a write that was to be made along with it would be a conflict
     ├─ Compacted         history that is gone; `.revision` is the oldest that can still be asked for
     ├─ FutureRevision    a list at a revision that is not written yet
     ├─ SlowWatcher       this reader fell behind and was dropped
     ├─ TooLarge          a value larger than the store takes
     ├─ Unreadable        a value that cannot be decrypted; `.key` is whose
     ├─ RecordDamaged     a record that the disk gave back otherwise than it was written; `.key`, `.revision`
     └─ StoreUnavailable  I/O error, no etcd, closed: nothing of the call is visible, and a later one may succeed; only
         │                etcd can lose the answer to a write that it did, and says so
         └─ DiskFull      of the log of an embedded store
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

import msgspec


class Record(msgspec.Struct, frozen=True):
    key: str
    value: bytes
    create_revision: int
    mod_revision: int
    stale: bool = False  # it would be stored otherwise now: with another key


class Change(msgspec.Struct, frozen=True):
    """One step of history. For a deletion `record.value` is the last value and `record.mod_revision` the deletion's."""

    deleted: bool
    record: Record
    previous: Record | None  # None for a creation


class Page(msgspec.Struct, frozen=True):
    records: Sequence[Record]
    revision: int  # the state of the store that the page shows
    remaining: int  # how many more match after the last record


class Companion(msgspec.Struct, frozen=True):
    """The update of another key that is made along with a write: both are made, or neither."""

    key: str
    value: bytes
    expected: int


class StoreError(Exception):
    pass


class KeyExists(StoreError):
    pass


class RevisionConflict(StoreError):
    def __init__(self, current: Record | None) -> None:
        super().__init__("the key was written since")
        self.current = current


class CompanionConflict(StoreError):
    def __init__(self) -> None:
        super().__init__("a key that was to be written along was written since")


class Compacted(StoreError):
    def __init__(self, revision: int) -> None:
        super().__init__(f"history before revision {revision} is compacted")
        self.revision = revision


class FutureRevision(StoreError):
    def __init__(self, current: int) -> None:
        super().__init__(f"the newest revision is {current}")
        self.current = current


class SlowWatcher(StoreError):
    pass


class TooLarge(StoreError):
    pass


class Unreadable(StoreError):
    def __init__(self, key: str, why: str) -> None:
        super().__init__(f'unable to transform key "{key}": {why}')
        self.key = key


class RecordDamaged(StoreError):
    def __init__(self, key: str, revision: int) -> None:
        super().__init__(f"the record of {key or 'an unknown key'} at revision {revision} is damaged")
        self.key, self.revision = key, revision


class StoreUnavailable(StoreError):
    pass


class DiskFull(StoreUnavailable):
    """`.room`: some was made just now, and what frees more can be tried again."""

    def __init__(self, message: str, *, room: bool) -> None:
        super().__init__(message)
        self.room = room


class About(msgspec.Struct, frozen=True):
    """What a watcher asks about: the changes for which `of` gives `value`. Watchers with the same `of` are told apart
    by one call of it for each change, however many they are. It must not raise."""

    of: Callable[[Change], Collection[str]]
    value: str


class Watch(Protocol):
    """Iterates over batches of changes in revision order, for one reader at a time; a cancelled `__anext__` loses
    nothing. Ends by raising `SlowWatcher` (dropped, never waited for), `Compacted` (history went while it was being
    read), `RecordDamaged`, `StoreUnavailable`, or `StopAsyncIteration` after `close`."""

    @property
    def revision(self) -> int:
        """All changes up to this revision have been handed out: what a bookmark may say."""

    def __aiter__(self) -> AsyncIterator[Sequence[Change]]: ...

    async def __anext__(self) -> Sequence[Change]: ...

    @property
    def behind(self) -> bool:
        """Whether what comes next has to be read from the log, for which `__anext__` has to be awaited."""

    def take(self) -> Sequence[Change] | None:
        """The next batch if there is one already, None when there is not. Raises what `__anext__` does."""

    def on_news(self, tell: Callable[[], None]) -> None:
        """Call `tell` from now on in the moment in which there is something to take, or the watch ends. It must not
        raise."""

    def close(self) -> None: ...


class Store(Protocol):
    @property
    def revision(self) -> int:
        """The newest revision whose write is durable and that watchers here can have seen."""

    @property
    def compacted(self) -> int:
        """Reads at, and watches from, revisions below this one raise `Compacted`."""

    @property
    def healthy(self) -> bool:
        """Whether it answered when it was last asked; what answers no more is asked again every ten seconds."""

    @property
    def problem(self) -> str:
        """Why the last write failed, for people; empty while writes are done."""

    async def servers(self) -> Mapping[str, str]:
        """Who keeps the records, by name, and why each does not; empty: it does. Asks those that are elsewhere now."""

    async def retry(self) -> None:
        """Where there is a problem, find out by a write that changes nothing whether there still is."""

    def stamp(self, prefix: str) -> int | None:
        """A number that is another after any write under the prefix that a read here would show; None when only a read
        can tell. For a few prefixes that are asked about again and again: each is counted from then on."""

    def catch_up(self) -> Awaitable[None] | None:
        """Wait until `stamp` tells of all that was written before this was called, also by another server; None where
        it does."""

    async def newest(self) -> int:
        """The newest revision there is, also when another server wrote it."""

    async def get(self, key: str) -> Record | None: ...

    async def list(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """Records whose key starts with `prefix`, in key order, beginning behind the key `after`. `revision` 0 means
        now; another shows the store as it was then. Raises Compacted, FutureRevision."""

    async def create(self, key: str, value: bytes, *, along: Sequence[Companion] = ()) -> Record:
        """Raises KeyExists; CompanionConflict when only one of the companions cannot be written."""

    async def update(
        self, key: str, value: bytes, *, expected: int, freeing: bool = False, along: Sequence[Companion] = ()
    ) -> Record:
        """Replace the value if `expected` is the key's mod_revision. One that is `freeing` is part of a deletion, and
        is tried on a full disk too. Raises RevisionConflict; CompanionConflict as `create` does."""

    async def delete(self, key: str, *, expected: int) -> Record:
        """Remove the key if `expected` is its mod_revision; the record carries the deletion's revision."""

    def watch(self, prefix: str, *, after: int, about: About | None = None) -> Watch:
        """All changes under `prefix` with a revision above `after`, first from history, then as they become durable.
        Those that are not `about` its value may be left out."""

    async def compact(self, revision: int) -> None:
        """Forget what was replaced or deleted before `revision`."""

    async def close(self) -> None: ...
