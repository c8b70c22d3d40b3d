"""Waiting longer after every failure: the arithmetic, and delays that are not in step with everybody else's."""

import msgspec

from podfit.core.randomness import Random, fraction


def delay_after(failures: int, first: float, longest: float) -> float:
    """The delay after the failure that followed `failures` others: doubling from `first` up to `longest`."""
    return min(longest, first * 2.0 ** min(failures, 62))


class Backoff(msgspec.Struct):
    """Delays in seconds: `first`, then doubling up to `longest`, each shortened by up to half at random."""

    first: float
    longest: float
    random: Random
    failures: int = 0

    def next(self) -> float:
        delay = delay_after(self.failures, self.first, self.longest)
        self.failures += 1
        return delay * (1 - fraction(self.random) / 2)

    def reset(self) -> None:
        self.failures = 0
