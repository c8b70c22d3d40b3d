"""Samples of many containers at once; a container may occur several times, in the order of its samples."""

from collections.abc import Iterator

import numpy as np

from podfit.decide.autoscaling.histograms import Floats, Rows


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
