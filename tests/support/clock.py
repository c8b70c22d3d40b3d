"""The clock of the pytest plugin, for podfit's own tests."""

from podfit.testing.clock import EPOCH
from podfit.testing.clock import VirtualClock as FakeClock

__all__ = ["EPOCH", "FakeClock", "at_rest"]


async def at_rest() -> None:
    """Nothing of this loop can run, in its threads neither, and nothing has arrived on its sockets."""
    await FakeClock().settle()
