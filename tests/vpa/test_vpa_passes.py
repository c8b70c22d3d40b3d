"""The health of what works in passes."""

import pytest

from podfit.vpa.progress import Passes
from support.clock import FakeClock


@pytest.mark.row("V-122")
async def test_vpa_health_fails_after_five_missed_passes() -> None:
    clock = FakeClock()
    passes, told = Passes(clock, 60.0), []
    await clock.advance(3600)
    told.append(passes.healthy)  # it waits to lead
    passes.done()
    for seconds in (300, 1):
        await clock.advance(seconds)
        told.append(passes.healthy)
    passes.done()
    told.append(passes.healthy)
    assert told == [True, True, False, True]
