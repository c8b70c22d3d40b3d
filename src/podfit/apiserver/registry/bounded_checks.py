"""Runs what costs as much as a user decides: checks in the event loop up to a bound, then in a thread; the decoding of
large bodies in threads of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from typing import TypeVar

from podfit.core.errors import ApiError
from podfit.core.loop_slices import Allowance, TooLong

T = TypeVar("T")
G = TypeVar("G")
READERS = 2
"""Threads that decode bodies. Each may keep the loop waiting for 5 ms, Python's switch interval."""
MOST = 20_000_000
"""Units (`core.loop_slices`) of one check: twice what the rules for an object may cost."""


class BoundedChecks:
    """Of one API server. Its thread takes turns with the loop, one check at a time, and every check ends by its own
    budget."""

    @cached_property
    def _beside(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="checks")

    @cached_property
    def _readers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="bodies")

    async def read(self, decode: Callable[[bytes], T], body: bytes) -> T:
        """What a body says, decoded beside the loop."""
        return await self.beside(decode, body)

    async def beside(self, work: Callable[[G], T], given: G) -> T:
        """What pure work makes of something, in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work, given)

    async def run(self, check: Callable[[], T]) -> T:
        """`check` changes nothing, so it can be done twice. Raises 413 for what takes too long there, too."""
        try:
            with Allowance():
                return check()
        except TooLong:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._beside, copy_context().run, _without_bound, check)

    def close(self) -> None:
        for name in vars(self).keys() & {"_beside", "_readers"}:
            getattr(self, name).shutdown(wait=False)


def _without_bound(check: Callable[[], T]) -> T:
    try:
        with Allowance(MOST):
            return check()
    except TooLong:
        text = "Request entity is too large: it takes too long to check against its schema"
        raise ApiError(413, "RequestEntityTooLarge", text) from None
