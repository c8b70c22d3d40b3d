"""Slow-start batches: 1 request, then twice as many each time, so that what is refused is refused once."""

import asyncio
from collections.abc import Awaitable, Callable

FIRST = 1


async def slow_start(count: int, work: Callable[[int], Awaitable[None]]) -> tuple[int, Exception | None]:
    """Calls `work` with 0, 1, ... up to `count`, and begins no batch after one in which something failed.

    How many succeeded, and the first failure.
    """
    done, begun, size = 0, 0, min(count, FIRST)
    while size:
        ended = await asyncio.gather(*(work(index) for index in range(begun, begun + size)), return_exceptions=True)
        begun += size
        failures = [outcome for outcome in ended if isinstance(outcome, BaseException)]
        done += size - len(failures)
        for failure in failures:
            if not isinstance(failure, Exception):
                raise failure
            return done, failure
        size = min(2 * size, count - begun)
    return done, None
