"""Resizes go first: what only tells of them waits until they are done, or for a moment.

    granted ──▶ begin ──▶ the pod's turn: runtime asked, kernel told, status on its way ──▶ end
                                          events of this node wait for everybody's end, SECONDS at most

An event costs the API server as much as the resize it tells of, on the same CPUs and the same disk.
"""

import asyncio

from podfit.core.clock import Clock

SECONDS = 0.25


class Precedence:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._going: set[str] = set()
        self._clear = asyncio.Event()
        self._clear.set()

    def begin(self, uid: str) -> None:
        self._going.add(uid)
        self._clear.clear()

    def end(self, uid: str) -> None:
        self._going.discard(uid)
        if not self._going:
            self._clear.set()

    async def clear(self) -> None:
        """Wait until nobody goes first."""
        if self._clear.is_set():
            return
        timer = self._clock.call_later(SECONDS, self._clear.set)
        await self._clear.wait()
        timer.cancel()
