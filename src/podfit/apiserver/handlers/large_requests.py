"""Large requests are worked on in several turns of the event loop, so that other clients have theirs in between."""

import asyncio

from podfit.net.wire import Request
from podfit.store.protocol import Record

LARGE = 64 * 1024  # bytes of a body, or of what it changes


def is_large(request: Request, record: Record | None = None) -> bool:
    """Whether a write is, as sent or as stored. Asked before `yield_turn`: a coroutine that does nothing would cost
    every small write a microsecond."""
    return len(request.body) > LARGE or (record is not None and len(record.value) > LARGE)


async def yield_turn() -> None:
    """Let others go on; between the steps of a write, where nothing is held."""
    await asyncio.sleep(0)
