"""The rate limit of evictions and resizes: a token bucket of `burst` that fills with `qps` a second (V-089)."""

from podfit.client.rate_limit import Rate
from podfit.core.clock import Clock


class EvictionRate:
    """Without a rate every turn is now."""

    def __init__(self, rate: Rate | None, clock: Clock) -> None:
        self._rate, self._clock = rate, clock
        self._due = clock.monotonic() - (rate.burst / rate.qps if rate else 0.0)

    async def taken(self, until: float) -> bool:
        """Wait for the next turn; False, at once, when it would come after `until` on the monotonic clock."""
        if self._rate is None:
            return True
        now, interval = self._clock.monotonic(), 1 / self._rate.qps
        due = max(self._due, now - self._rate.burst * interval) + interval
        if due > until:
            return False
        self._due = due
        if due > now:
            await self._clock.sleep(due - now)
        return True
