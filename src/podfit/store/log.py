"""`Log`: the durable log of changes that `LoggedStore` is built on; SQLite's, or one in memory."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from podfit.store.protocol import Change, Page, Record


class Log(Protocol):
    """Where changes are kept. `append`, `compact` and `forget` are called from one thread, `page`, `changes` and
    `obsolete` from another, `close` when both have ended. All raise StoreUnavailable, those that read RecordDamaged."""

    @property
    def problem(self) -> str:
        """Why the last write failed; empty when it was done."""

    @property
    def full(self) -> bool:
        """Only what makes room is to be written."""

    def room(self) -> bool:
        """Whether the disk seems full no more; quick, from any thread."""

    def retry(self) -> None:
        """Does what `append` does, with nothing to add."""

    def append(self, changes: Sequence[Change], *, freeing: bool = False) -> None:
        """Make them durable, all or none. Raises DiskFull; `freeing` ones may use what is kept for them."""

    def compact(self, revision: int) -> None:
        """Remember that history before the revision is not offered any more."""

    def obsolete(self, revision: int) -> Sequence[int]:
        """The changes that only history before `revision` needs, ascending."""

    def forget(self, revisions: Sequence[int]) -> None:
        """Remove changes that are obsolete; ascending, so that a key's deletion outlives what it deleted."""

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        """The records as they were at a revision."""

    def changes(self, prefix: str, after: int, until: int, limit: int) -> Sequence[Change]: ...

    def close(self) -> None: ...


class Loaded(msgspec.Struct, frozen=True):
    """What a log holds when it is opened."""

    records: Sequence[Record]
    revision: int
    compacted: int
