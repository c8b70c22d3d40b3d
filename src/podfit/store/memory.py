"""A log that forgets everything with the process: for tests and throw-away clusters."""

from collections.abc import Sequence

from podfit.store.index import Index
from podfit.store.logged import Loaded, LoggedStore
from podfit.store.protocol import Change, Page


class MemoryLog:
    def __init__(self) -> None:
        self._changes: list[Change] = []

    def append(self, changes: Sequence[Change]) -> None:
        self._changes.extend(changes)

    def compact(self, revision: int) -> None:
        last = {change.record.key: change for change in self._changes if change.record.mod_revision <= revision}
        kept = {id(change) for change in last.values() if not change.deleted}
        self._changes = [
            change for change in self._changes if change.record.mod_revision > revision or id(change) in kept
        ]

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        index = Index()
        for change in self._changes:
            if change.record.mod_revision <= revision:
                index.apply(change)
        return index.page(prefix, after=after, limit=limit, revision=revision)

    def changes(self, prefix: str, after: int, until: int) -> Sequence[Change]:
        return [
            change
            for change in self._changes
            if after < change.record.mod_revision <= until and change.record.key.startswith(prefix)
        ]

    def close(self) -> None:
        """Nothing is held."""


def memory_store() -> LoggedStore:
    """A new, empty store; make it inside a running event loop."""
    return LoggedStore(MemoryLog(), Loaded((), revision=1, compacted=0))
