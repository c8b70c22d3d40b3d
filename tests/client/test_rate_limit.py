"""A client's limit: a burst at once, then an even pace; what was not used does not add up beyond the burst."""

import asyncio

from podfit.client.rate_limit import Rate, RateLimited
from podfit.net.wire import Request, Response
from support.clock import FakeClock


class Server:
    near = True

    def __init__(self, clock: FakeClock) -> None:
        self._clock, self.asked = clock, list[float]()

    async def send(self, request: Request) -> Response:
        self.asked.append(round(self._clock.monotonic(), 6))
        return Response(200, {}, b"")

    async def close(self) -> None: ...


async def test_a_burst_and_then_an_even_pace() -> None:
    clock = FakeClock()
    server, began = Server(clock), clock.monotonic()
    limited = RateLimited(server, Rate(qps=2, burst=3), clock)

    async def ask(times: int) -> list[float]:
        server.asked.clear()
        waiting = [asyncio.create_task(limited.send(Request("GET", "/"))) for _ in range(times)]
        for _ in range(20):
            await clock.advance(0.25)
        await asyncio.gather(*waiting)
        return [time - began for time in server.asked]

    assert await ask(6) == [0.0, 0.0, 0.0, 0.5, 1.0, 1.5]
    again = await ask(4)
    assert [time - again[0] for time in again] == [0.0, 0.0, 0.0, 0.5]
