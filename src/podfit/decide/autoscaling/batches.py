"""Samples of many containers at once, in arrays that grow; a container may occur several times, in order."""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from podfit.decide.autoscaling.histograms import Floats, Rows

FEWEST = 16
T = TypeVar("T", bound=np.generic)


class Slots:
    """`used` says of each place below `capacity` whether it is taken."""

    def __init__(self) -> None:
        self.used = np.zeros(0, dtype=np.bool_)
        self._free: list[int] = []

    @property
    def capacity(self) -> int:
        return len(self.used)

    def take(self, number: int) -> NDArray[np.intp]:
        """Free places; when there are too few, arrays have to grow by a quarter at least."""
        lacking = number - len(self._free)
        if lacking > 0:
            wanted = self.capacity + max(lacking, FEWEST, self.capacity // 4)
            self._free = [*range(wanted - 1, self.capacity - 1, -1), *self._free]
            self.used = self.grown(self.used, wanted)
        places = np.array([self._free.pop() for _ in range(number)], dtype=np.intp)
        self.used[places] = True
        return places

    def give_back(self, places: NDArray[np.intp]) -> None:
        self.used[places] = False
        self._free += places.tolist()

    def grown(self, array: NDArray[T], capacity: int = 0) -> NDArray[T]:
        """The array with zeros behind it, as long as there are places."""
        result = np.zeros(capacity or self.capacity, dtype=array.dtype)
        result[: len(array)] = array
        return result


def occurs_once(slots: Rows) -> bool:
    """Whether no container has two samples, as in every pass over a cluster. Counting is quicker than sorting."""
    return not len(slots) or int(np.bincount(slots).max()) == 1


def newest_before(slots: Rows, times: Floats, last: Floats) -> Floats:
    """For each sample the newest time of its container before it: in this batch, or else in `last`."""
    before = last[slots]
    if occurs_once(slots):
        return before
    order = np.argsort(slots, kind="stable")
    same = slots[order][1:] == slots[order][:-1]
    if not same.any():
        return before
    # Ranks of times, higher for later containers, so that one running maximum does not reach into the next container.
    ranks = np.empty(len(times), dtype=np.int64)
    ranks[np.argsort(times, kind="stable")] = np.arange(len(times))
    container = np.concatenate(([0], np.cumsum(~same)))
    largest = np.maximum.accumulate(ranks[order] + container * len(times))
    by_rank = np.sort(times)
    earlier = by_rank[largest[:-1] % len(times)]
    found = before[order]
    found[1:] = np.where(same, np.maximum(found[1:], earlier), found[1:])
    result: Floats = np.empty(len(times))
    result[order] = found
    return result


def window_peaks(
    slots: Rows, amounts: Floats, times: Floats, ends: Floats, interval: Floats
) -> Iterator[tuple[Rows, Floats, Floats]]:
    """The largest sample of each container in each window, as batches in which no container occurs twice.

    `ends` are the ends of the windows that are open, minus infinity where there is none; samples of one container are
    in order of time. Of a window's samples only the largest counts, so the others need not be looked at.
    """
    if occurs_once(slots):
        yield slots, amounts, times
        return
    order = np.argsort(slots, kind="stable")
    slots, amounts, times, ends, interval = slots[order], amounts[order], times[order], ends[order], interval[order]
    begins = np.concatenate(([True], slots[1:] != slots[:-1]))
    (first,) = begins.nonzero()
    container = np.cumsum(begins) - 1
    ends = np.where(np.isinf(ends), times[first][container], ends)
    window = np.where(times >= ends, np.floor((times - ends) / interval) + 1, 0)
    (starts,) = (begins | np.concatenate(([True], window[1:] != window[:-1]))).nonzero()
    peaks = np.maximum.reduceat(amounts, starts)
    turn = np.arange(len(starts)) - np.searchsorted(starts, first)[container[starts]]
    for number in range(int(turn.max()) + 1):
        (places,) = (turn == number).nonzero()
        yield slots[starts[places]], peaks[places], times[starts[places]]
