"""Chance as components see it: handed in like the clock, so that a simulated cluster replays from a seed.

Keys, nonces and the numbers of tokens are not chance of this kind: they come from the machine, always.
"""

from typing import Protocol


class Random(Protocol):
    def below(self, bound: int) -> int:
        """A whole number from 0 on, less than `bound` (at least 1), each as likely."""

    def uuid(self) -> str:
        """A UUID of version 4."""
