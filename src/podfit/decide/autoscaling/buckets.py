"""The exponential buckets of a histogram: each is a fixed ratio wider than the one below it (V-010).

An index follows from a logarithm in double precision, and values on a border fall where its rounding puts them.
`lowest` has the smallest number of each bucket by that formula, so that a search among 176 borders answers as the
formula does, on every machine and for many values at once.
"""

import math
import struct
from collections.abc import Mapping
from functools import lru_cache

import msgspec


class Buckets(msgspec.Struct, frozen=True):
    """`maximum` is the value that has to find a bucket, `first` the width of the first one. Weights below `epsilon`
    count as nothing."""

    maximum: float
    first: float
    ratio: float
    epsilon: float

    @property
    def count(self) -> int:
        return math.ceil(math.log(self.maximum * (self.ratio - 1) / self.first + 1) / math.log(self.ratio)) + 1

    def start(self, index: int) -> float:
        """The lower border of a bucket."""
        return 0.0 if index == 0 else self.first * (math.pow(self.ratio, index) - 1) / (self.ratio - 1)

    def index(self, value: float) -> int:
        """The index of the bucket that a value falls into; the last one holds all that is larger."""
        if value < self.first:
            return 0
        return min(self.count - 1, int(math.log(value * (self.ratio - 1) / self.first + 1) / math.log(self.ratio)))

    @property
    def ends(self) -> tuple[float, ...]:
        """What stands for a bucket: its upper border, and of the last one the lower (V-011)."""
        count = self.count
        return tuple(self.start(min(index + 1, count - 1)) for index in range(count))


CPU_BUCKETS = Buckets(maximum=1000.0, first=0.01, ratio=1.05, epsilon=0.0001)
"""Cores."""
MEMORY_BUCKETS = Buckets(maximum=1e12, first=1e7, ratio=1.05, epsilon=0.0001)
"""Bytes."""


FINE_CPU_BUCKETS = Buckets(maximum=1000.0, first=0.001, ratio=1.05, epsilon=0.0001)
FINE_MEMORY_BUCKETS = Buckets(maximum=1e12, first=1e6, ratio=1.05, epsilon=0.0001)
"""Not upstream's: for workloads below ten millicores or ten megabytes."""


def rebucketed(weights: Mapping[int, int], old: Buckets, new: Buckets) -> dict[int, int]:
    """Weights of other buckets: what stands for one of them falls into the new bucket that ends there or after."""
    found: dict[int, int] = {}
    for index, weight in weights.items():
        place = new.index(old.ends[index] * (1 - 1e-9))
        found[place] = found.get(place, 0) + weight
    return found


@lru_cache(maxsize=8)
def lowest(buckets: Buckets) -> tuple[float, ...]:
    """The smallest number that `index` puts into each bucket; minus infinity for the first."""
    return (-math.inf, *(_first_of(buckets, index) for index in range(1, buckets.count)))


def _first_of(buckets: Buckets, index: int) -> float:
    """The first value of a bucket, found by bisection: doubles above zero are ordered as their bits are."""
    below, above = _bits(buckets.start(index) * (1 - 1e-9)), _bits(buckets.start(index) * (1 + 1e-9))
    while above - below > 1:
        middle = (below + above) // 2
        if buckets.index(_double(middle)) >= index:
            above = middle
        else:
            below = middle
    return _double(above)


def _bits(number: float) -> int:
    found: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return found


def _double(bits: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return found
