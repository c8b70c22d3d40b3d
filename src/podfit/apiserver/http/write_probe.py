"""The readiness check of writes: by the last write, without a write of its own for each probe.

After a failure nobody may write any more, so the question itself has the store try again, every five seconds at most.
"""

from podfit.core.clock import Clock
from podfit.net.supervisor import Supervisor
from podfit.store.protocol import Store

PAUSE = 5.0  # seconds between tries


class WriteProbe:
    def __init__(self, store: Store, clock: Clock, supervisor: Supervisor) -> None:
        self._store, self._clock, self._supervisor = store, clock, supervisor
        self._next = 0.0

    def problem(self) -> str:
        """Why writes fail; empty when they are done."""
        now = self._clock.monotonic()
        if self._store.problem and now >= self._next:
            self._next = now + PAUSE
            self._supervisor.begin(self._store.retry(), name="trying to write")
        return self._store.problem
