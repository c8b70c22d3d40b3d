"""The health of what works in passes."""

import pytest

from podfit.vpa.passes import Passes
from support.clock import FakeClock


@pytest.mark.row("V-122")
async def test_vpa_health_fails_after_five_missed_passes() -> None:
    clock = FakeClock()
    passes = Passes(clock, 60.0)
    await clock.advance(3600)
    assert passes.healthy  # it waits to lead
    passes.done()
    await clock.advance(300)
    assert passes.healthy
    await clock.advance(1)
    assert not passes.healthy
    passes.done()
    assert passes.healthy
