"""A log in memory, for tests and throw-away clusters."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from podfit.store.index import Index
from podfit.store.log import Loaded
from podfit.store.logged import LoggedStore
from podfit.store.protocol import Change, Page


class MemoryLog:
    def __init__(self) -> None:
        self._changes: list[Change] = []

    problem = ""
    full = False

    def room(self) -> bool:
        return True

    def retry(self) -> None:
        """Writes do not fail."""

    def append(self, changes: Sequence[Change], *, freeing: bool = False) -> None:
        self._changes.extend(changes)

    def compact(self, revision: int) -> None:
        """Nothing to remember: the bound does not outlive the process either."""

    def obsolete(self, revision: int) -> Sequence[int]:
        history = [change for change in self._changes if change.record.mod_revision <= revision]
        last = {change.record.key: change for change in history}
        return [
            change.record.mod_revision for change in history if change.deleted or last[change.record.key] is not change
        ]

    def forget(self, revisions: Sequence[int]) -> None:
        forgotten = set(revisions)
        self._changes = [change for change in self._changes if change.record.mod_revision not in forgotten]

    def page(self, prefix: str, *, after: str, limit: int, revision: int) -> Page:
        current: dict[str, Change] = {}
        for change in self._changes:
            if change.record.mod_revision <= revision:
                current[change.record.key] = change
        index = Index(change.record for change in current.values() if not change.deleted)
        return index.page(prefix, after=after, limit=limit, revision=revision)

    def changes(self, prefix: str, after: int, until: int, limit: int) -> Sequence[Change]:
        found = [
            change
            for change in self._changes
            if after < change.record.mod_revision <= until and change.record.key.startswith(prefix)
        ]
        return found[:limit]

    def close(self) -> None:
        """Nothing is held."""


def memory_store(executor: type[ThreadPoolExecutor] = ThreadPoolExecutor) -> LoggedStore:
    """A new, empty store; make it inside a running event loop. `InlineExecutor` makes it one without threads."""
    return LoggedStore(MemoryLog(), Loaded((), revision=1, compacted=0), executor)
