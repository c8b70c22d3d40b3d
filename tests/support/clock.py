"""The clock of the pytest plugin, for podfit's own tests."""

from podfit.testing.clock import EPOCH
from podfit.testing.clock import VirtualClock as FakeClock

__all__ = ["EPOCH", "FakeClock"]
