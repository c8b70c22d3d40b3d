"""Watchers: each change is handed on once, in the event loop, when it is durable.

A watcher that does not keep up is dropped and told so; nothing ever waits for it. The newest changes stay in a ring, so
that a watch resumed after a short break needs no disk.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from podfit.store.protocol import Change, SlowWatcher

RECENT = 10_000  # changes kept for watches that resume
BEHIND = 10_000  # changes a watcher may be behind before it is dropped

History: TypeAlias = Callable[[str, int, int], Awaitable[Sequence[Change]]]
"""`(prefix, after, until)` → what changed in between, from the log."""


class HubWatch:
    """One reader. Changes up to the moment of its creation come from history, later ones as they happen."""

    def __init__(self, hub: "Hub", prefix: str, after: int, history: Sequence[Change] | None) -> None:
        self._hub = hub
        self._prefix = prefix
        self._after = after
        self._until = hub.revision
        self._waiting: deque[Sequence[Change]] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._lost = self._closed = False
        self._history_due = history is None
        if history:
            self._waiting.append(history)

    def __aiter__(self) -> "HubWatch":
        return self

    async def __anext__(self) -> Sequence[Change]:
        if self._history_due:
            self._history_due = False
            if past := await self._hub.history(self._prefix, self._after, self._until):
                return past
        while True:
            if self._lost:
                self.close()
                raise SlowWatcher("the watcher fell behind and was dropped")
            if self._waiting:
                changes = self._waiting.popleft()
                self._size -= len(changes)
                return changes
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    def offer(self, changes: Sequence[Change]) -> None:
        """What has just become durable."""
        mine = [each for each in changes if each.record.key.startswith(self._prefix) and self._new(each)]
        if not mine:
            return
        self._size += len(mine)
        if self._size > BEHIND:
            self._lost = True
            self._waiting.clear()
        else:
            self._waiting.append(mine)
        self._wake.set()

    def _new(self, change: Change) -> bool:
        return change.record.mod_revision > self._after

    def close(self) -> None:
        self._closed = True
        self._hub.discard(self)
        self._wake.set()


class Hub:
    """All watchers of a store. `revision` is the newest that they have been told of."""

    def __init__(self, revision: int, history: History) -> None:
        self.revision = revision
        self.history = history
        self._recent: deque[Change] = deque(maxlen=RECENT)
        self._oldest = revision  # the ring has everything above this revision
        self._watches: set[HubWatch] = set()

    def publish(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if len(self._recent) == RECENT:
                self._oldest = self._recent[0].record.mod_revision
            self._recent.append(change)
        self.revision = changes[-1].record.mod_revision
        for watch in tuple(self._watches):
            watch.offer(changes)

    def watch(self, prefix: str, after: int) -> HubWatch:
        past = self._since(prefix, after) if after >= self._oldest else None
        watch = HubWatch(self, prefix, after, past)
        self._watches.add(watch)
        return watch

    def _since(self, prefix: str, after: int) -> Sequence[Change]:
        newer = []
        for change in reversed(self._recent):
            if change.record.mod_revision <= after:
                break
            if change.record.key.startswith(prefix):
                newer.append(change)
        return newer[::-1]

    def discard(self, watch: HubWatch) -> None:
        self._watches.discard(watch)

    def close(self) -> None:
        for watch in tuple(self._watches):
            watch.close()
