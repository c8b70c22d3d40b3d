"""Writes that begin again on the new state when someone else was quicker, instead of giving the client a conflict."""

from collections.abc import Awaitable, Callable

from podfit.apiserver.stored import Changed
from podfit.net.wire import Response

ATTEMPTS = 5


async def until_unchanged(attempt: Callable[[], Awaitable[Response]]) -> Response:
    """What an undisturbed attempt answers. After the last of them the conflict is the client's after all."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except Changed:
            continue
    return await attempt()
