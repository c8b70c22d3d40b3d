"""`Random`: randomness handed in like the clock, so that a simulated cluster replays from a seed.

The machine's, and that of a seed, are in `net.system`. Keys and bootstrap tokens are not chance of this kind.
"""

from typing import Protocol

_FRACTIONS = 1 << 53  # as many as a float tells apart


class Random(Protocol):
    def below(self, bound: int) -> int:
        """A whole number from 0 on, less than `bound` (at least 1), each as likely."""

    def uuid(self) -> str:
        """A UUID of version 4."""


def fraction(random: Random) -> float:
    """At least 0, less than 1."""
    return random.below(_FRACTIONS) / _FRACTIONS
