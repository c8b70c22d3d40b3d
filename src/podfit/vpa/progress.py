"""The liveness check of a process that works in rounds: whether its last round is recent enough (V-122)."""

from podfit.core.clock import Clock

MISSED = 5


class Passes:
    """Healthy until the first pass was due, and while the last is not older than five intervals of `seconds`."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._longest = clock, MISSED * seconds
        self._last: float | None = None

    def done(self) -> None:
        """A pass has ended, or the loop begins."""
        self._last = self._clock.monotonic()

    @property
    def healthy(self) -> bool:
        return self._last is None or self._clock.monotonic() - self._last <= self._longest
