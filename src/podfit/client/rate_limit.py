"""Rate limits: a token bucket of `burst` turns that fills with `qps` a second, and a transport whose requests take
them.
"""

import msgspec

from podfit.client.transport import Transport
from podfit.core.clock import Clock
from podfit.net.wire import Request, Response


class Rate(msgspec.Struct, frozen=True):
    """`qps` requests a second in the long run, `burst` at once."""

    qps: float
    burst: int


class TokenBucket:
    """The times of turns at a rate, each taken once and in order."""

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate, self._clock = rate, clock
        self._due = clock.monotonic() - rate.burst / rate.qps  # when the next turn would be at an even pace

    def next(self) -> float:
        """When the next turn is, on the monotonic clock."""
        interval = 1 / self._rate.qps
        return max(self._due, self._clock.monotonic() - self._rate.burst * interval) + interval

    def take(self) -> float:
        """Take the next turn; seconds until it comes, at most 0 when that is now."""
        self._due = self.next()
        return self._due - self._clock.monotonic()


class RateLimited:
    """A transport whose requests wait for their turn, in order."""

    def __init__(self, transport: Transport, rate: Rate, clock: Clock) -> None:
        self._transport, self._clock, self._bucket = transport, clock, TokenBucket(rate, clock)
        self.near = transport.near

    async def send(self, request: Request) -> Response:
        if (pause := self._bucket.take()) > 0:
            await self._clock.sleep(pause)
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()
