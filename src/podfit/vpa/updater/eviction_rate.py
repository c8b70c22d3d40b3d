"""The rate limit of evictions and resizes: a token bucket of `burst` that fills with `qps` a second (V-089)."""

from podfit.client.rate_limit import Rate, TokenBucket
from podfit.core.clock import Clock


class EvictionRate:
    """Without a rate every turn is now."""

    def __init__(self, rate: Rate | None, clock: Clock) -> None:
        self._bucket, self._clock = TokenBucket(rate, clock) if rate else None, clock

    async def taken(self, until: float) -> bool:
        """Wait for the next turn; False, at once, when it would come after `until` on the monotonic clock."""
        if self._bucket is None:
            return True
        if self._bucket.next() > until:
            return False
        if (pause := self._bucket.take()) > 0:
            await self._clock.sleep(pause)
        return True
