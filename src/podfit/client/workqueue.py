"""The work queue: keys that need reconciling, each queued once and handled by one worker at a time.

add ──▶ waiting ──get──▶ in work ──done──▶ gone, or waiting again if it was added meanwhile
         ▲                  │
         └── after a delay ─┘ retry: 5 ms after the first failure of a key, doubling up to `longest`

Work that waits for nothing keeps others of the process waiting for a few milliseconds at most. A key whose work is
large may `rest`: what is added meanwhile waits. Keys that have a share, such as their namespace, take turns by it:
whoever has ten thousand of them waits for his own.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from podfit.core.backoff import delay_after
from podfit.core.clock import Clock, Timer
from podfit.core.errors import ApiError

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

FIRST_DELAY = 0.005
LONGEST_DELAY = 60.0
LONGEST_HURRY = 1.0
BUSY_SECONDS = 0.002
"""Of keys whose work waits for nothing; then others of the process have their turn."""
CONFLICT = 409  # somebody wrote first: looked at again, and nothing to worry about


def one_share(_: object) -> None:
    """Keys come in their order."""


class Turns(Generic[K]):
    """Keys in their order within a share, and one of each share after the other."""

    def __init__(self, share: Callable[[K], Hashable]) -> None:
        self._share = share
        self._keys: dict[Hashable, deque[K]] = {}
        self._order: deque[Hashable] = deque()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, key: K) -> None:
        share = self._share(key)
        if share not in self._keys:
            self._keys[share] = deque()
            self._order.append(share)
        self._keys[share].append(key)
        self._length += 1

    def popleft(self) -> K:
        """Raises IndexError where there is none."""
        share = self._order.popleft()
        key = self._keys[share].popleft()
        self._length -= 1
        if self._keys[share]:
            self._order.append(share)
        else:
            del self._keys[share]
        return key


class WorkQueue(Generic[K]):
    def __init__(
        self,
        clock: Clock,
        *,
        first: float = FIRST_DELAY,
        longest: float = LONGEST_DELAY,
        share: Callable[[K], Hashable] = one_share,
    ) -> None:
        self._clock = clock
        self._first = first
        self._longest = longest
        self._ready = Turns(share)
        self._waiting: set[K] = set()  # to be worked on: ready, or added while in work
        self._in_work: set[K] = set()
        self._failures: dict[K, int] = {}
        self._hurried: dict[K, int] = {}  # how often in a row a key asked to be looked at again at once
        self._timers: dict[K, tuple[float, Timer]] = {}
        self._resting: dict[K, float] = {}  # until when
        self._getters: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """How many keys could be worked on now."""
        return len(self._ready)

    def add(self, key: K) -> None:
        if key in self._waiting:
            return
        if key not in self._in_work and (left := self._resting.get(key, 0.0) - self._clock.monotonic()) > 0:
            self.add_after(key, left)
            return
        self._waiting.add(key)
        if key not in self._in_work:
            self._make_ready(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add later; of several times asked for the soonest counts."""
        if seconds <= 0:
            self.add(key)
            return
        when = self._clock.monotonic() + seconds
        if key in self._timers:
            soonest, timer = self._timers[key]
            if soonest <= when:
                return
            timer.cancel()
        self._timers[key] = (when, self._clock.call_later(seconds, lambda: self._due(key)))

    def rest(self, key: K, seconds: float) -> None:
        """Not work on the key, which is in work now, for so long."""
        if seconds > 0:
            self._resting[key] = self._clock.monotonic() + seconds
            self._clock.call_later(seconds, lambda: self._rested(key))

    def _rested(self, key: K) -> None:
        if self._resting.get(key, math.inf) <= self._clock.monotonic():
            del self._resting[key]

    def retry(self, key: K) -> float:
        """Add again after a failure, later each time; returns the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = delay_after(failures, self._first, self._longest)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key's failures are over."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The key that has waited longest, of the share whose turn it is; call `done` when its work is over."""
        while not self._ready:
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled():
                    self._wake()  # the wake-up was meant for a worker that goes on
                raise
        key = self._ready.popleft()
        self._waiting.discard(key)
        self._in_work.add(key)
        return key

    def done(self, key: K) -> None:
        self._in_work.discard(key)
        if key in self._resting and key in self._waiting:
            self._waiting.discard(key)
            self.add(key)
        elif key in self._waiting:
            self._make_ready(key)

    async def run(self, work: Callable[[K], Awaitable[float | None]], *, workers: int = 1) -> None:
        """Work on keys until cancelled. `work` returns seconds after which to look again, or None; if it raises, the
        key is retried. No key is looked at again and again without a pause, whatever its work returns.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(work))

    async def _worker(self, work: Callable[[K], Awaitable[float | None]]) -> None:
        began = self._clock.monotonic()
        while True:
            idle = not self._ready
            key = await self.get()
            if idle:
                began = self._clock.monotonic()
            try:
                again = await work(key)
            except ApiError as error:
                delay = self.retry(key)
                level = logging.INFO if error.code == CONFLICT else logging.WARNING
                log.log(level, "work refused key=%s retry_seconds=%.3f error=%s", key, delay, error)
            except Exception:
                delay = self.retry(key)
                log.exception("work failed key=%s failures=%d retry_seconds=%.3f", key, self._failures[key], delay)
            else:
                self.forget(key)
                if again is None:
                    self._hurried.pop(key, None)
                else:
                    self.add_after(key, self._unhurried(key, again))
            finally:
                self.done(key)
            if self._clock.monotonic() - began > BUSY_SECONDS:
                await asyncio.sleep(0)
                began = self._clock.monotonic()

    def _unhurried(self, key: K, seconds: float) -> float:
        """Seconds after which to look again: what asks for it at once, again and again, waits longer each time."""
        times = self._hurried.get(key, 0)
        least = delay_after(times, FIRST_DELAY, LONGEST_HURRY)
        if seconds >= least:
            self._hurried.pop(key, None)
            return seconds
        self._hurried[key] = times + 1
        return least

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)

    def _make_ready(self, key: K) -> None:
        self._ready.append(key)
        self._wake()

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
