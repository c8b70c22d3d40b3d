"""The watch hub: hands each durable change on once, in the event loop; in the same moment to a watcher that asks for it
(`on_news`).

A watcher that does not keep up is dropped and told so; nothing ever waits for it. The newest changes stay in a ring, so
that a watch resumed after a short break needs no disk. Both are bounded by what they hold in memory, not by a count: a
thousand leases are small, a thousand config maps need not be. Watchers of the same prefix share one filtered batch;
those that are about a value, as each kubelet's about its node, are only told of changes that are about it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeAlias

from podfit.store.protocol import About, Change, SlowWatcher, StoreError

RECENT = 32 * 2**20  # bytes of changes kept for watches that resume
BEHIND = 16 * 2**20  # bytes a watcher may be behind before it is dropped; one batch is always accepted
OVERHEAD = 1024  # bytes counted for a change beside its value
HISTORY_PAGE = 500  # changes read from the log at once

History: TypeAlias = Callable[[str, int, int, int], Awaitable[Sequence[Change]]]
"""`(prefix, after, until, limit)` → the first changes in between, from the log: at most `limit`, fewer where they are
large, none when there are none. Raises Compacted, StoreUnavailable."""


class HubWatch:
    """One reader. Changes up to the moment of its creation come from history, later ones as they happen."""

    def __init__(
        self, hub: "Hub", prefix: str, after: int, recent: Sequence[Change] | None, about: About | None = None
    ) -> None:
        """`recent` is all that happened since `after`; None leaves it to be read from the log."""
        self.prefix, self.about = prefix, about
        self._hub = hub
        self._seen = after
        self._history_until = hub.revision if recent is None else 0
        self._waiting: deque[Sequence[Change]] = deque([recent] if recent else ())
        self._size = 0  # of what waits, without the history it began with
        self._wake = asyncio.Event()
        self._tell: Callable[[], None] | None = None
        self._lost: StoreError | None = None
        self._closed = False

    @property
    def revision(self) -> int:
        if self._waiting or self._history_until or self._lost or self._closed:
            return self._seen
        return max(self._seen, self._hub.revision)

    def __aiter__(self) -> "HubWatch":
        return self

    async def __anext__(self) -> Sequence[Change]:
        while True:
            if self.behind and not self._lost:
                if changes := await self._read_history():
                    return changes
            elif (waiting := self.take()) is not None:
                return waiting
            else:
                self._wake.clear()
                await self._wake.wait()

    @property
    def behind(self) -> bool:
        return bool(self._history_until) and not self._closed

    def take(self) -> Sequence[Change] | None:
        if self._waiting and not self.behind:
            return self._take()
        if self._lost:
            raise self._lost
        if self.behind:
            return None
        if self._closed:
            raise StopAsyncIteration
        return None

    def on_news(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    async def _read_history(self) -> Sequence[Change]:
        changes = await self._hub.history(self.prefix, self._seen, self._history_until, HISTORY_PAGE)
        if changes:
            self._seen = changes[-1].record.mod_revision
        if not changes or self._seen >= self._history_until:
            self._history_until = 0
        return changes

    def _take(self) -> Sequence[Change]:
        changes = self._waiting.popleft()
        self._size = self._size - weight(changes) if self._waiting else 0
        self._seen = changes[-1].record.mod_revision
        return changes

    def offer(self, changes: Sequence[Change], size: int) -> None:
        """Changes under the prefix that have just become durable; `size` is their weight."""
        if changes[0].record.mod_revision <= self._seen:  # it asked for what comes after a revision still ahead
            changes = [change for change in changes if change.record.mod_revision > self._seen]
            if not changes:
                return
        if self._waiting and self._size + size > BEHIND:
            self.lose(SlowWatcher("the watcher fell behind and was dropped"))
            return
        self._waiting.append(changes)
        self._size += size
        self._news()

    def lose(self, reason: StoreError) -> None:
        """Drop the reader: it is told so instead of what it has not read yet."""
        self._lost = reason
        self._waiting.clear()
        self.close()

    def close(self) -> None:
        self._closed = True
        self._hub.discard(self)
        self._news()

    def _news(self) -> None:
        self._wake.set()
        if self._tell is not None:
            self._tell()


_Watches: TypeAlias = dict[HubWatch, None]
_Of: TypeAlias = Callable[[Change], Collection[str]]


class Hub:
    """All watchers of a store. `revision` is the newest that they have been told of."""

    def __init__(self, revision: int, history: History) -> None:
        self.revision = revision
        self.history = history
        self._recent: deque[Change] = deque()
        self._recent_size = 0
        self._oldest = revision  # the ring has everything above this revision
        self._watches: dict[str, _Watches] = {}  # by prefix; in the order in which they began
        self._narrow: dict[
            tuple[str, _Of], dict[str, _Watches]
        ] = {}  # by prefix and what tells them apart; by its value

    def publish(self, changes: Sequence[Change]) -> None:
        """Tell of a batch, at least one change in revision order, that is durable; first those whom it is about."""
        self._remember(changes)
        self.revision = changes[-1].record.mod_revision
        self._tell_those_concerned(changes)
        lengths = set(map(len, self._watches))
        beginnings = {change.record.key[:length] for change in changes for length in lengths}
        for prefix in [prefix for prefix in self._watches if prefix in beginnings]:  # few of many
            mine = [change for change in changes if change.record.key.startswith(prefix)]
            _offer(mine, self._watches.get(prefix, {}))

    def _tell_those_concerned(self, changes: Sequence[Change]) -> None:
        for (prefix, of), by_value in tuple(self._narrow.items()):
            found: dict[str, list[Change]] = {}
            for change in changes:
                if change.record.key.startswith(prefix):
                    for value in of(change):
                        if value in by_value:
                            found.setdefault(value, []).append(change)
            for value, mine in found.items():
                _offer(mine, by_value.get(value, {}))

    def advance(self, revision: int) -> None:
        """Nothing more happened up to this revision than was published."""
        self.revision = max(self.revision, revision)

    def restart(self, revision: int, reason: StoreError) -> None:
        """What happened up to this revision was missed: every watcher is dropped, and the ring begins anew."""
        for watch in self._all():
            watch.lose(reason)
        self._recent.clear()
        self._recent_size = 0
        self._oldest = self.revision = revision

    def watch(self, prefix: str, after: int, about: About | None = None) -> HubWatch:
        recent = self._since(prefix, after) if after >= self._oldest else None
        watch = HubWatch(self, prefix, after, recent, about)
        if about is None:
            self._watches.setdefault(prefix, {})[watch] = None
        else:
            self._narrow.setdefault((prefix, about.of), {}).setdefault(about.value, {})[watch] = None
        return watch

    def discard(self, watch: HubWatch) -> None:
        prefix, about = watch.prefix, watch.about
        if about is None:
            _drop(self._watches, prefix, watch)
        elif by_value := self._narrow.get((prefix, about.of)):
            _drop(by_value, about.value, watch)
            if not by_value:
                del self._narrow[prefix, about.of]

    def close(self) -> None:
        for watch in self._all():
            watch.close()

    def _all(self) -> list[HubWatch]:
        groups = [*self._watches.values(), *(group for values in self._narrow.values() for group in values.values())]
        return [watch for group in groups for watch in group]

    def _remember(self, changes: Sequence[Change]) -> None:
        self._recent.extend(changes)
        self._recent_size += weight(changes)
        while self._recent_size > RECENT:
            forgotten = self._recent.popleft()
            self._recent_size -= weight((forgotten,))
            self._oldest = forgotten.record.mod_revision

    def _since(self, prefix: str, after: int) -> Sequence[Change]:
        newer = []
        for change in reversed(self._recent):
            if change.record.mod_revision <= after:
                break
            if change.record.key.startswith(prefix):
                newer.append(change)
        return newer[::-1]


def _offer(changes: Sequence[Change], watches: _Watches) -> None:
    size = weight(changes)
    for watch in tuple(watches):
        watch.offer(changes, size)


def _drop(groups: dict[str, _Watches], name: str, watch: HubWatch) -> None:
    group = groups.get(name, {})
    group.pop(watch, None)
    if not group:
        groups.pop(name, None)


def weight(changes: Sequence[Change]) -> int:
    """Bytes that the changes are counted with."""
    return sum(len(change.record.value) for change in changes) + OVERHEAD * len(changes)
