"""Retries of a write: again on the new state after a conflict; a large one in slices of the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from podfit.apiserver.registry.stored import Changed
from podfit.net.wire import Request
from podfit.store.protocol import Record

ATTEMPTS = 5
Answer = TypeVar("Answer")
LARGE = 64 * 1024  # bytes of a body, or of what it changes


async def until_unchanged(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """What an undisturbed attempt answers. After the last of them the conflict is the client's after all."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except Changed:
            continue
    return await attempt()


def is_large(request: Request, record: Record | None = None) -> bool:
    """Whether a write is, as sent or as stored. Asked before `yield_turn`: a coroutine that does nothing would cost
    every small write a microsecond."""
    return len(request.body) > LARGE or (record is not None and len(record.value) > LARGE)


async def yield_turn() -> None:
    """Let others go on; between the steps of a write, where nothing is held."""
    await asyncio.sleep(0)
