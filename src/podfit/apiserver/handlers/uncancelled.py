"""Runs a write to its end although the client that asked for it has gone."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from podfit.core.errors import ApiError
from podfit.store.protocol import StoreError

log = logging.getLogger(__name__)
T = TypeVar("T")


async def uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """What `work` comes to; it goes on when whoever waits for it is cancelled. As asyncio.shield, in a turn of the
    event loop less, which is much for a small write."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    loop.create_task(_told(work, done))  # noqa: RUF006  (what it waits for holds it, as of a task that is shielded)
    return await done


async def _told(work: Coroutine[Any, Any, T], done: "asyncio.Future[T]") -> None:
    try:
        result = await work
    except asyncio.CancelledError:
        done.cancel()
        raise
    except Exception as error:
        if not done.done():
            done.set_exception(error)
        elif not isinstance(error, ApiError | StoreError):  # nobody waits, and it is no refusal
            log.exception("a write failed whose client had left")
    else:
        if not done.done():
            done.set_result(result)
