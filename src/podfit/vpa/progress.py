"""Processes that work in passes: the loop, and the liveness check that the last pass is recent enough (V-122)."""

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from podfit.core.clock import Clock

log = logging.getLogger(__name__)

MISSED = 5


class Passes:
    """Healthy until the first pass was due, and while the last is not older than five intervals of `seconds`."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._longest = clock, MISSED * seconds
        self._last: float | None = None

    def done(self) -> None:
        """A pass has ended, or the loop begins."""
        self._last = self._clock.monotonic()

    @property
    def healthy(self) -> bool:
        return self._last is None or self._clock.monotonic() - self._last <= self._longest


async def repeat(
    work: Callable[[], Awaitable[None]], *, every: float, clock: Clock, passed: Callable[[], None]
) -> NoReturn:
    """A pass every so many seconds; `passed` is called at the start, and after each pass that worked."""
    passed()
    while True:
        await clock.sleep(every)
        try:
            await work()
        except Exception:  # the next one may be better; its health tells when none is
            log.exception("a pass has failed")
        else:
            passed()
