"""Events between two passes: they are gathered, and looked at together, so often and no more.

    an event ─▶ what it concerns waits ─▶ half a second later, and when it is the turn: one look at all that waits

A look is taken at once as long as there are turns left: ten, and one more every five seconds. So a crash loop of a
thousand pods costs a look every five seconds, and nothing that it does keeps another VPA waiting longer than that.
"""

import asyncio
from typing import NamedTuple

from podfit.client.rate_limit import Rate, TokenBucket
from podfit.core.clock import Clock, Timer

GATHER = 0.5
"""Seconds: what happens together, such as the pods of a node that become Ready, is one look."""
RATE = Rate(qps=0.2, burst=10)
MOST = 10_000
"""That wait at a time; what is more is left to the next pass."""


class Concerned(NamedTuple):
    """What an event is about, by the name of its kind."""

    kind: str
    namespace: str
    name: str


class Wakes:
    """What is to be looked at, in the order in which it happened."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._turns = clock, TokenBucket(RATE, clock)
        self._waiting: dict[Concerned, None] = {}
        self._later: dict[Concerned, tuple[float, Timer]] = {}
        self._happened = asyncio.Event()

    def add(self, key: Concerned) -> None:
        if key in self._waiting or len(self._waiting) < MOST:
            self._waiting[key] = None
            self._happened.set()

    def add_after(self, seconds: float, key: Concerned) -> None:
        """Once; of two times the earlier counts."""
        at = self._clock.monotonic() + seconds
        known = self._later.get(key)
        if known is not None and known[0] <= at:
            return
        if known is not None:
            known[1].cancel()
        elif len(self._later) >= MOST:
            return
        self._later[key] = at, self._clock.call_later(seconds, lambda: self._due(key))

    def _due(self, key: Concerned) -> None:
        self._later.pop(key, None)
        self.add(key)

    def forget(self) -> None:
        """A pass looks at everything."""
        self._waiting.clear()
        self._happened.clear()

    def close(self) -> None:
        for _, timer in self._later.values():
            timer.cancel()
        self._later.clear()

    async def next(self, due: float) -> tuple[Concerned, ...]:
        """What is to be looked at before `due` on the monotonic clock; nothing when that has come first."""
        timer = self._clock.call_later(max(0.0, due - self._clock.monotonic()), self._happened.set)
        try:
            await self._happened.wait()
        finally:
            timer.cancel()
        now = self._clock.monotonic()
        at = max(now + GATHER, self._turns.next())
        if now >= due or at >= due:
            await self._clock.sleep(max(0.0, due - now))
            return ()
        await self._clock.sleep(at - now)
        self._turns.take()
        found = tuple(self._waiting)
        self.forget()
        return found
