"""What a recommender starts from: checkpoints, a history, or, where both are kept, what reaches further back.

A history has each sample and counts it as it was measured; checkpoints have a share of each bucket. But one that was
begun yesterday knows less than checkpoints of a week.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from podfit.core.clock import Clock
from podfit.decide.autoscaling.checkpoints import reaches_further
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.vpa.history.past_usage import ReadPast
from podfit.vpa.history.replay import fill
from podfit.vpa.recommender.checkpoints import Checkpoints

log = logging.getLogger(__name__)
LONGEST = 600.0
"""Seconds that a history is read beside checkpoints."""


class PastSource(msgspec.Struct, frozen=True, kw_only=True):
    """A history to start from. With `began`, which says when it was begun (None: it has nothing), checkpoints are kept
    beside it; without, there are none.
    """

    read: ReadPast
    began: Callable[[], float | None] | None = None

    @property
    def instead(self) -> bool:
        """Of checkpoints."""
        return self.began is None


async def start(state: ClusterState, checkpoints: Checkpoints, past: PastSource | None, clock: Clock) -> None:
    """Fill what knows nothing yet."""
    now = clock.now().timestamp()
    if past is None:
        checkpoints.restore(await checkpoints.list_with_retries())
    elif past.began is None:
        await _filled(state, past.read, now)
    else:
        kept, began = await checkpoints.list_with_retries(), past.began()
        further = began is not None and reaches_further(began, kept, now)
        if not further or not await _within(clock, _filled(state, past.read, now)):
            checkpoints.restore(kept)


async def _within(clock: Clock, filled: Coroutine[Any, Any, int]) -> int:
    """What it takes for LONGEST at most: checkpoints are there."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as scope:
            timer = clock.call_later(LONGEST, lambda: scope.reschedule(loop.time()))
            try:
                return await filled
            finally:
                timer.cancel()
    except TimeoutError:
        log.warning("history not read within seconds=%g, checkpoints are", LONGEST)
        return 0


async def _filled(state: ClusterState, read: ReadPast, now: float) -> int:
    """How many samples were taken; without a history the model is empty, and what was recommended stays."""
    try:
        taken = await fill(state, await read(now), now)
    except ConnectionError as error:
        log.warning("history not read, the model is empty error=%s", error)
        return 0
    log.info("history read samples=%d", taken)
    return taken
