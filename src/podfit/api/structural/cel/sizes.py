"""Saturating 64-bit arithmetic for sizes and costs."""

import math
from dataclasses import dataclass

MOST = 2**64 - 1
WALK, PATTERN = 0.1, 0.25
"""What a character costs: of a text that is walked, and of a pattern for each step of the text."""


def add(one: int, other: int) -> int:
    return min(MOST, one + other)


def multiply(one: int, other: int) -> int:
    return min(MOST, one * other)


def walked(size: int, factor: float = WALK) -> int:
    return MOST if size >= MOST and factor >= 1 else min(MOST, math.ceil(float(size) * factor))


@dataclass(frozen=True, slots=True)
class Size:
    least: int
    most: int

    def plus(self, other: "Size") -> "Size":
        return Size(add(self.least, other.least), add(self.most, other.most))

    def times(self, other: "Size") -> "Size":
        return Size(multiply(self.least, other.least), multiply(self.most, other.most))

    def either(self, other: "Size") -> "Size":
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN = Size(0, MOST)
