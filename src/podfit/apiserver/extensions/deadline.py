"""Deadlines for calls of webhooks and aggregated servers, by the server's own clock."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from podfit.core.clock import Clock

T = TypeVar("T")


async def with_deadline(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """Raises TimeoutError when the clock says that the time is over."""
    task = asyncio.ensure_future(work)
    over = False

    def end() -> None:
        nonlocal over
        over = True
        task.cancel()

    timer = clock.call_later(seconds, end)
    try:
        return await task
    except asyncio.CancelledError:
        if over:
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
