"""Writes that begin again on the new state when someone else was quicker, instead of giving the client a conflict."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from podfit.apiserver.registry.stored import Changed

ATTEMPTS = 5
Answer = TypeVar("Answer")


async def until_unchanged(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """What an undisturbed attempt answers. After the last of them the conflict is the client's after all."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except Changed:
            continue
    return await attempt()
