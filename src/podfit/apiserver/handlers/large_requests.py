"""Large requests are worked on in several turns of the event loop, so that other clients have theirs in between."""

import asyncio

from podfit.net.wire import Request

LARGE = 64 * 1024  # bytes of a body


def is_large(request: Request) -> bool:
    """Asked before `yield_turn`: a coroutine that does nothing would cost every small write a microsecond."""
    return len(request.body) > LARGE


async def yield_turn() -> None:
    """Let others go on; between the steps of a write, where nothing is held."""
    await asyncio.sleep(0)
