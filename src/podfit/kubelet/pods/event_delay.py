"""Delays events until the resizes under way are done, so that they do not slow these down.

    granted ──▶ begin ──▶ the pod's turn: runtime asked, kernel told, status on its way ──▶ end
                                          events of this node wait for the end of all of them, SECONDS at most

An event costs the API server as much as the resize it tells of, on the same CPUs and the same disk.
"""

import asyncio

from podfit.core.clock import Clock

SECONDS = 0.25


class EventDelay:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._resizing: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self, uid: str) -> None:
        self._resizing.add(uid)
        self._idle.clear()

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
