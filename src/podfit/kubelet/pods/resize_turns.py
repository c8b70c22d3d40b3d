"""Turns of pods whose resize was granted: so many at a time, and events after them.

    granted ──▶ begin ──▶ a slot ──▶ the pod's turn: kernel told, runtime asked ──▶ status written ──▶ end
                                          events of this node wait for the end of all of them, SECONDS at most

Each turn takes CPU, and a process of the runtime takes more. Fifty at once would crowd out the PATCHes that are still
to be answered, and the growth that follows from them. An event costs the API server as much as the resize it tells of,
on the same CPUs and the same disk.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from podfit.core.clock import Clock

SECONDS = 1.0
LEAST = 8
"""Turns at a time; where there are more CPUs, twice as many as those."""
LONG_SECONDS = 0.5


class Slots:
    """Places for so many resizes at a time, in the order in which they come. Who has one for longer than LONG_SECONDS,
    as where the runtime hangs, holds up nobody any more."""

    def __init__(self, number: int, clock: Clock) -> None:
        self._free, self._clock = asyncio.Semaphore(number), clock

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        await self._free.acquire()
        held = ExitStack()
        held.callback(self._free.release)
        timer = self._clock.call_later(LONG_SECONDS, held.close)
        try:
            yield
        finally:
            timer.cancel()
            held.close()


class EventDelay:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._resizing: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self, uid: str) -> None:
        self._resizing.add(uid)
        self._idle.clear()

    def holds(self, uid: str) -> bool:
        return uid in self._resizing

    def end(self, uid: str) -> None:
        self._resizing.discard(uid)
        if not self._resizing:
            self._idle.set()

    async def wait(self) -> None:
        """Until no resize is under way, or for SECONDS."""
        if self._idle.is_set():
            return
        timer = self._clock.call_later(SECONDS, self._idle.set)
        await self._idle.wait()
        timer.cancel()
