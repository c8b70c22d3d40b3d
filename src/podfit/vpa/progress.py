"""Processes that work in passes: the loop, and the liveness check that the last pass is recent enough (V-122)."""

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

from podfit.core.clock import Clock
from podfit.vpa.wakes import Concerned, Wakes

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
    work: Callable[[], Awaitable[None]],
    *,
    every: float,
    clock: Clock,
    passed: Callable[[], None],
    wakes: Wakes,
    look: Callable[[tuple[Concerned, ...]], Awaitable[None]],
) -> NoReturn:
    """A pass every so many seconds; `passed` is called at the start, and after each pass that worked. What `wakes`
    tells of in between is looked at.
    """
    passed()
    try:
        while True:
            due = clock.monotonic() + every
            while concerned := await wakes.next(due):
                await _without_end(look(concerned), "a look has failed, the next pass looks again")
            wakes.forget()
            if await _without_end(work(), "a pass has failed"):
                passed()
    finally:
        wakes.close()


async def _without_end(work: Awaitable[None], text: str) -> bool:
    """Whether it worked: the next one may be better; its health tells when none is."""
    try:
        await work
    except Exception:
        log.exception(text)
        return False
    return True
