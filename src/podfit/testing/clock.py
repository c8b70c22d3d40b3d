"""A clock that moves only when a test says so.

`advance` goes from one moment at which something is due to the next. It fires the timers of that moment in the order in
which they were set, and lets the event loop run until it says that it is at rest (`podfit.testing.loop`), with what was
given to threads. A test that advances an hour therefore sees exactly what an hour would have done, and pays only for
the moments at which something happens.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

from podfit.testing.loop import ThreadsLoop

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
REST_SECONDS = 60.0  # of real time without rest: a task always has more to do
THREAD_SECONDS = 60.0  # of real time for work in threads; what takes longer counts as hanging


class NeverAtRest(AssertionError):
    """A task goes on and on without waiting for anything."""


class VirtualTimer:
    __slots__ = ("callback", "when")

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """`hanging` tells which work in threads a test has made to hang, so that time moves on without it."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self.hanging: Callable[[], Collection[asyncio.Future[object]]] = tuple
        self._start = start
        self._elapsed = 0.0
        self._timers: list[tuple[float, int, VirtualTimer]] = []  # the second number keeps their order
        self._order = itertools.count()
        self._given_up: set[asyncio.Future[object]] = set()

    def jump(self, seconds: float) -> None:
        """The time of day is set, forward or back; what is measured goes on as before."""
        self._start += timedelta(seconds=seconds)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(self._elapsed + max(0.0, seconds), callback)
        heapq.heappush(self._timers, (timer.when, next(self._order), timer))
        return timer

    @property
    def pending(self) -> list[float]:
        """Seconds from now of the timers that still wait, soonest first."""
        return sorted(when - self._elapsed for when, _, timer in self._timers if timer.callback is not None)

    async def advance(self, seconds: float) -> None:
        """Move on by `seconds`, running what falls due on the way, including timers that are set meanwhile."""
        target = self._elapsed + seconds
        await self.settle()
        while self._timers and self._timers[0][0] <= target:
            if self._fire(self._timers[0][0]):
                await self.settle()
        self._elapsed = target

    def _fire(self, moment: float) -> bool:
        """What is due then; whether there was anything. A timer that another one of the same moment sets or cancels is
        heard, as by a real event loop."""
        fired = False
        while self._timers and self._timers[0][0] <= moment:
            callback = heapq.heappop(self._timers)[2].callback
            if callback is not None:
                self._elapsed, fired = max(self._elapsed, moment), True
                callback()
        return fired

    async def settle(self) -> None:
        """Let the tasks that can run do so, without moving time, and wait for what they gave to threads.

        Raises TypeError on an event loop that does not say when it is at rest, NeverAtRest when there is always more to
        do.
        """
        loop = asyncio.get_running_loop()
        if not isinstance(loop, ThreadsLoop):
            raise TypeError(f"a virtual clock needs the loop of podfit.testing.loop, not {type(loop).__name__}")
        await self._rest(loop)
        while in_threads := loop.in_threads - self._given_up - set(self.hanging()):
            ended, _ = await asyncio.wait(in_threads, timeout=THREAD_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            self._given_up |= set() if ended else in_threads
            await self._rest(loop)

    @staticmethod
    async def _rest(loop: ThreadsLoop) -> None:
        try:
            async with asyncio.timeout(REST_SECONDS):
                await loop.rest()
        except TimeoutError:
            names = sorted(task.get_name() for task in asyncio.all_tasks())
            raise NeverAtRest(f"a task that always has more to do is among these: {', '.join(names)}") from None
