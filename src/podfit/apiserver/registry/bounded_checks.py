"""Runs checks whose cost a user decides: in the event loop up to a bound, then in a thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from typing import TypeVar

from podfit.core.errors import ApiError
from podfit.core.loop_slices import Allowance, TooLong

T = TypeVar("T")
MOST = 20_000_000
"""Units (`core.loop_slices`) of one check: twice what the rules for an object may cost."""


class BoundedChecks:
    """Of one API server. Its thread takes turns with the loop, one check at a time, and every check ends by its own
    budget."""

    @cached_property
    def _beside(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="checks")

    async def run(self, check: Callable[[], T]) -> T:
        """`check` changes nothing, so it can be done twice. Raises 413 for what takes too long there, too."""
        try:
            with Allowance():
                return check()
        except TooLong:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._beside, copy_context().run, _without_bound, check)

    def close(self) -> None:
        if "_beside" in vars(self):
            self._beside.shutdown(wait=False)


def _without_bound(check: Callable[[], T]) -> T:
    try:
        with Allowance(MOST):
            return check()
    except TooLong:
        text = "Request entity is too large: it takes too long to check against its schema"
        raise ApiError(413, "RequestEntityTooLarge", text) from None
