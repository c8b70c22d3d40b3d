"""Waiting longer after every failure, and not in step with everybody else."""

import msgspec

from podfit.core.backoff import delay_after
from podfit.core.randomness import Random, fraction


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
