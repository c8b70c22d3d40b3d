"""Allocations of requests under way, which no repair may release yet. Measured by the monotonic clock.

Of a record that another server wrote only the time of day is known. It says at most that the record is old; otherwise
the record counts from when it was first seen here.
"""

from datetime import datetime

from podfit.core.clock import Clock
from podfit.store.protocol import Record

SECONDS = 60.0
MOST = 4096  # records remembered


class PendingAllocations:
    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def begin(self, record: Record, clock: Clock, *, age: float = 0.0) -> None:
        """A request wrote it just now, or `age` seconds ago."""
        while len(self._since) >= MOST:
            del self._since[next(iter(self._since))]
        self._since[record.key, record.mod_revision] = clock.monotonic() - age

    def end(self, record: Record) -> None:
        """The request that wrote it is over."""
        self._since.pop((record.key, record.mod_revision), None)

    def has(self, record: Record, clock: Clock, *, written: datetime) -> bool:
        """`written` is the time of day at which a server says that it wrote the record."""
        known = self._since.get((record.key, record.mod_revision))
        if known is not None:
            return clock.monotonic() - known < SECONDS
        age = (clock.now() - written).total_seconds()
        if age >= SECONDS:
            return False
        self.begin(record, clock, age=max(0.0, age))
        return True
