"""Decaying histograms of many containers as one array: a row each, operations on many rows at once.

A sample of age `a` weighs 2^(-a/half-life) beside one of now. Instead of making old weights smaller, new ones are made
larger, by 2^((t-reference)/half-life); the reference moves only when that factor would pass 2^100 (V-012). References
are whole multiples of the half-life, so histograms are merged by exact powers of two (V-013).

    weights    [buckets, rows]  float64; buckets that nobody is in take no memory of the machine
    total      [rows]           float64, weights too small for a bucket to count included
    reference  [rows]           float64, seconds since 1970; minus infinity before the first sample
    least, most [rows]          int16, the first and last bucket of at least epsilon; least > most when empty

A histogram is called a row, as in a table; its buckets lie apart in memory, since every operation goes through a bucket
of many histograms at a time. Times are seconds since 1970, values are in the units of the buckets. A row may occur
several times in one call.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podfit.decide.autoscaling.buckets import Buckets, lowest

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.intp]

LONGEST_DECAY = 100
"""Half-lives after which the reference moves."""
SHARES = 10_000
"""A checkpoint's heaviest bucket; the others are rounded to this scale."""
YEAR_ONE = -62_135_596_800
"""Seconds from 1970 to the year 1, from which references are counted."""


AT_ONCE = 512
"""Rows of which all weights are looked at together: as many as fit a processor's cache."""
_BY_ROW = ("total", "reference", "least", "most")


class HistogramBank:
    def __init__(self, buckets: Buckets, half_life: float, rows: int = 0) -> None:
        self.buckets, self.half_life = buckets, half_life
        self.size = rows
        self._lowest, self._ends, self._columns = _tables(buckets)
        self.weights: Floats = np.zeros((buckets.count, rows))
        self.total: Floats = np.zeros(rows)
        self.reference: Floats = np.full(rows, -np.inf)
        self.least = np.full(rows, len(self._columns) - 1, dtype=np.int16)
        self.most = np.zeros(rows, dtype=np.int16)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays; parts that were never written take no memory of the machine."""
        return sum(array.nbytes for array in (self.weights, self.total, self.reference, self.least, self.most))

    def extend(self, rows: int) -> None:
        """Empty rows at the end, until there are `rows`."""
        more, size = HistogramBank(self.buckets, self.half_life, rows), self.size
        for bucket in np.flatnonzero(self.weights.any(axis=1)):
            more.weights[bucket, :size] = self.weights[bucket]
        for name in ("total", "reference", "least", "most"):
            getattr(more, name)[:size] = getattr(self, name)
        for name in (*_BY_ROW, "weights", "size"):
            setattr(self, name, getattr(more, name))

    def clear(self, rows: Rows) -> None:
        """Make them empty again."""
        buckets, held = self.weights[:, rows].nonzero()
        self.weights[buckets, rows[held]] = 0.0
        self.total[rows], self.reference[rows] = 0.0, -np.inf
        self.least[rows], self.most[rows] = self.buckets.count - 1, 0

    def add(self, rows: Rows, values: Floats, weight: float, times: Floats) -> None:
        """A sample for each of `rows`."""
        scaled, columns = weight * self._factors(rows, times), self._index(values).astype(np.int16)
        flat = columns.astype(np.intp) * self.size + rows
        np.add.at(self.weights.reshape(-1), flat, scaled)
        np.add.at(self.total, rows, scaled)
        counts = self.weights.reshape(-1)[flat] >= self.buckets.epsilon
        if not counts.all():
            rows, columns = rows[counts], columns[counts]
        np.minimum.at(self.least, rows, columns)
        np.maximum.at(self.most, rows, columns)

    def subtract(self, rows: Rows, values: Floats, weight: float, times: Floats) -> None:
        """Take samples back; what is left below epsilon is nothing (V-015)."""
        scaled = weight * self._factors(rows, times)
        flat = self._index(values) * self.size + rows
        for array, places in ((self.weights.reshape(-1), flat), (self.total, rows)):
            np.subtract.at(array, places, scaled)
            array[places] = np.where(array[places] < self.buckets.epsilon, 0.0, array[places])
        self._tighten(rows)

    def is_empty(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.weights[self.least, np.arange(self.size)] < self.buckets.epsilon
        return found

    def percentiles(self, shares: Sequence[float | Floats]) -> Floats:
        """For each of `shares` and each row the value that this share of the weight does not exceed; 0 for empty rows.

        Shape [shares, rows]. A share is for all rows, or has one for each.
        """
        used, sums = self._counted()
        for bucket in range(1, len(sums)):  # a sum along the other axis takes three times as long
            sums[bucket] += sums[bucket - 1]
        empty, found = self.is_empty(), np.zeros((len(shares), self.size))
        for place, share in enumerate(shares):
            below = np.add.reduce(sums < share * self.total, axis=0, dtype=np.uint8).astype(np.intp) + used.start
            found[place] = np.where(empty, 0.0, self._ends[np.clip(below, self.least, self.most)])
        return found

    def _inside(self, rows: Rows | slice) -> tuple[slice, NDArray[np.bool_]]:
        """The buckets that any of these rows uses, and which of them are between the row's least and most."""
        least, most = self.least[rows], self.most[rows]
        some = (least <= most).any()
        used = slice(int(least.min()), int(most.max()) + 1) if some else slice(0, 1)
        columns = self._columns[used, None]
        return used, (columns >= least) & (columns <= most)

    def _counted(self) -> tuple[slice, Floats]:
        """The buckets that any row uses, and their weights without those too small to count at either end."""
        used, inside = self._inside(slice(None))
        return used, np.where(inside, self.weights[used], 0.0)

    def merged(self, rows: Rows, starts: Rows) -> "HistogramBank":
        """A new bank: its row `g` is the sum of `rows[starts[g]:starts[g+1]]`; no group may be empty.

        References that differ within a group are made equal in this bank too, so that the next time they are.
        """
        if len(starts) == len(rows):
            return self._taken(rows)
        sizes = np.diff(np.append(starts, len(rows)))
        newest = np.maximum.reduceat(self.reference[rows], starts)
        wanted = np.repeat(newest, sizes)
        if (self.reference[rows] != wanted).any():
            latest = self.reference.copy()
            np.maximum.at(latest, rows, wanted)
            self._shift_to(*_changed(self.reference, latest))
        part = self._taken(rows)
        part._shift_to(np.arange(len(rows)), wanted)
        result = HistogramBank(self.buckets, self.half_life, len(starts))
        result.reference = newest
        used, counted = part._counted()
        result.weights[used] = np.add.reduceat(counted, starts, axis=1)
        result.total = np.add.reduceat(part.total, starts)
        result.least = np.minimum.reduceat(part.least, starts)
        result.most = np.maximum.reduceat(part.most, starts)
        return result

    def shares(self) -> NDArray[np.int64]:
        """Weights for a checkpoint, [rows, buckets]: the heaviest of a row is 10000, what rounds to nothing is 0."""
        used, weights = self._counted()
        heaviest = weights.max(axis=0)
        found = np.zeros((self.size, self.buckets.count), dtype=np.int64)
        found[:, used] = np.floor(weights * SHARES / np.where(heaviest > 0, heaviest, 1.0) + 0.5).T
        return found

    def load(self, row: int, weights: Mapping[int, int], total: float, reference: float) -> None:
        """Add a checkpoint to a row. ValueError says what is wrong with it, and the row is as before."""
        if not total >= 0:
            raise ValueError(f"cannot load checkpoint with negative weight {total}")
        check_indices(weights, self.buckets.count)
        self.reference[row] = reference
        sum_of_shares = sum(weights.values())
        if sum_of_shares == 0:
            return
        columns = np.array(list(weights), dtype=np.intp)
        self.weights[columns, row] += np.array(list(weights.values()), dtype=np.float64) * (total / sum_of_shares)
        self.total[row] += total
        self.least[row] = min(self.least[row], columns.min())
        self.most[row] = max(self.most[row], columns.max())
        self._tighten(np.array([row]))

    def _index(self, values: Floats) -> Rows:
        """The index by the formula, which the borders put right: a search among them for each value takes five times as
        long."""
        buckets, last = self.buckets, len(self._columns) - 1
        found = np.log(np.maximum(values, 0.0) * ((buckets.ratio - 1) / buckets.first) + 1) / math.log(buckets.ratio)
        columns = np.minimum(found, last).astype(np.intp)
        columns -= self._lowest[columns] > values
        columns += self._lowest[np.minimum(columns + 1, last)] <= values
        return np.minimum(columns, last)

    def _factors(self, rows: Rows, times: Floats) -> Floats:
        """How much samples of these times count, after moving references that are too old for them."""
        old = times > self.reference[rows] + LONGEST_DECAY * self.half_life
        if old.any():
            moved, first = np.unique(rows[old], return_index=True)
            self._shift_to(moved, self.rounded(times[old][first]))
        return np.exp2((times - self.reference[rows]) / self.half_life)

    def rounded(self, times: Floats) -> Floats:
        """To the nearest multiple of the half-life since the year 1, upwards in the middle."""
        origin = YEAR_ONE % self.half_life
        found: Floats = np.floor((times - origin) / self.half_life + 0.5) * self.half_life + origin
        return found

    def _shift_to(self, rows: Rows, references: Floats) -> None:
        """Count from other references; those of the same are left alone."""
        before = self.reference[rows]
        self.reference[rows] = references
        held = (before != references) & (self.total[rows] > 0)
        if not held.any():
            return
        rows, before, references = rows[held], before[held], references[held]
        factors = np.exp2(np.floor((before - references) / self.half_life + 0.5))
        used, inside = self._inside(rows)
        self.weights[used, rows] *= np.where(inside, factors, 1.0)
        self.total[rows] *= factors
        self._tighten(rows)

    def _tighten(self, rows: Rows) -> None:
        """Move `least` and `most` of these rows inwards to buckets that count; outside of them there are none."""
        epsilon, last = self.buckets.epsilon, len(self._columns) - 1
        light = (self.weights[self.least[rows], rows] < epsilon) | (self.weights[self.most[rows], rows] < epsilon)
        rows = np.unique(rows[light])
        for start in range(0, len(rows), AT_ONCE):
            part = rows[start : start + AT_ONCE]
            used, inside = self._inside(part)
            counts, columns = inside & (self.weights[used, part] >= epsilon), self._columns[used, None]
            self.least[part] = np.where(counts, columns, last).min(axis=0)
            self.most[part] = np.where(counts, columns, 0).max(axis=0)

    def _taken(self, rows: Rows) -> "HistogramBank":
        """A bank of copies of these rows."""
        part = HistogramBank(self.buckets, self.half_life)
        part.size, part.weights = len(rows), np.take(self.weights, rows, axis=1)
        for name in _BY_ROW:
            setattr(part, name, getattr(self, name)[rows])
        return part


def check_indices(weights: Mapping[int, int], count: int) -> None:
    """ValueError for a bucket that there is not."""
    for index in weights:
        if not 0 <= index < count:
            raise ValueError(f"cannot load checkpoint with bucket {index}, out of range [0,{count - 1}]")


@lru_cache(maxsize=8)
def _tables(buckets: Buckets) -> tuple[Floats, Floats, NDArray[np.int16]]:
    """The smallest value of each bucket, what stands for it, and its number."""
    return np.array(lowest(buckets)), np.array(buckets.ends), np.arange(buckets.count, dtype=np.int16)


def _changed(before: Floats, after: Floats) -> tuple[Rows, Floats]:
    """Where two arrays differ, and what the second has there."""
    (rows,) = (before != after).nonzero()
    return rows, after[rows]
