"""The client-side rate limit: a token bucket of `burst` requests that fills with `qps` a second."""

import msgspec

from podfit.client.transport import Transport
from podfit.core.clock import Clock
from podfit.net.wire import Request, Response


class Rate(msgspec.Struct, frozen=True):
    """`qps` requests a second in the long run, `burst` at once."""

    qps: float
    burst: int


class RateLimited:
    """A transport whose requests wait for their turn, in order."""

    def __init__(self, transport: Transport, rate: Rate, clock: Clock) -> None:
        self._transport, self._rate, self._clock = transport, rate, clock
        self._due = clock.monotonic() - rate.burst / rate.qps  # when the next request would be due at an even pace
        self.near = transport.near

    async def send(self, request: Request) -> Response:
        if (pause := self._turn()) > 0:
            await self._clock.sleep(pause)
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()

    def _turn(self) -> float:
        """Take the next turn; seconds until it comes."""
        now, interval = self._clock.monotonic(), 1 / self._rate.qps
        self._due = max(self._due, now - self._rate.burst * interval) + interval
        return self._due - now
