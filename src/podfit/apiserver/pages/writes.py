"""Whether the store takes writes, as /readyz tells: by the last write, not by one of its own for each question.

After a failure nobody may write any more, so the question itself has the store try again, every five seconds at most.
"""

import asyncio

from podfit.core.clock import Clock
from podfit.store.protocol import Store

PAUSE = 5.0  # seconds between tries


class Writes:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._next = 0.0
        self._trying: asyncio.Task[None] | None = None

    def problem(self) -> str:
        """Why writes fail; empty when they are done."""
        now = self._clock.monotonic()
        if self._store.problem and now >= self._next:
            self._next = now + PAUSE
            self._trying = asyncio.create_task(self._store.retry())
        return self._store.problem
