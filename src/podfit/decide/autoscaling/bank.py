"""Decaying histograms of many containers as one array: a row each, and every operation works on many rows at once.

A sample of age `a` weighs 2^(-a/half-life) beside one of now. Instead of making old weights smaller, new ones are made
larger, by 2^((t-reference)/half-life); the reference moves only when that factor would pass 2^100 (V-012). References
are whole multiples of the half-life, so histograms are merged by exact powers of two (V-013).

    weights    [rows, buckets]  float64
    total      [rows]           float64, weights too small for a bucket to count included
    reference  [rows]           float64, seconds since 1970; minus infinity before the first sample
    least, most [rows]          int16, the first and last bucket of at least epsilon; least > most when empty

Times are seconds since 1970, values are in the units of the buckets. A row may occur several times in one call.
"""

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


class Bank:
    def __init__(self, buckets: Buckets, half_life: float, rows: int = 0) -> None:
        self.buckets, self.half_life = buckets, half_life
        self.size = rows
        self._lowest, self._ends, self._columns = _tables(buckets)
        self.weights: Floats = np.zeros((rows, len(self._columns)))
        self.total: Floats = np.zeros(rows)
        self.reference: Floats = np.full(rows, -np.inf)
        self.least = np.full(rows, len(self._columns) - 1, dtype=np.int16)
        self.most = np.zeros(rows, dtype=np.int16)

    @property
    def nbytes(self) -> int:
        """Of all arrays; rows that were never written take no memory of the machine."""
        return sum(array.nbytes for array in (self.weights, self.total, self.reference, self.least, self.most))

    def extend(self, rows: int) -> None:
        """Empty rows at the end, until there are `rows`."""
        more = Bank(self.buckets, self.half_life, rows - self.size)
        for name in ("weights", "total", "reference", "least", "most"):
            setattr(self, name, np.concatenate((getattr(self, name), getattr(more, name))))
        self.size = rows

    def clear(self, rows: Rows) -> None:
        """Make them empty again."""
        self.weights[rows], self.total[rows], self.reference[rows] = 0.0, 0.0, -np.inf
        self.least[rows], self.most[rows] = self.buckets.count - 1, 0

    def add(self, rows: Rows, values: Floats, weight: float, times: Floats) -> None:
        """A sample for each of `rows`."""
        scaled, columns = weight * self._factors(rows, times), self._index(values)
        flat = rows * len(self._columns) + columns
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
        flat = rows * len(self._columns) + self._index(values)
        for array, places in ((self.weights.reshape(-1), flat), (self.total, rows)):
            np.subtract.at(array, places, scaled)
            array[places] = np.where(array[places] < self.buckets.epsilon, 0.0, array[places])
        self._tighten(rows)

    def is_empty(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.weights[np.arange(self.size), self.least] < self.buckets.epsilon
        return found

    def percentiles(self, shares: Sequence[float | Floats]) -> Floats:
        """For each of `shares` and each row the value that this share of the weight does not exceed; 0 for empty rows.

        Shape [shares, rows]. A share is for all rows, or has one for each.
        """
        inside = (self._columns >= self.least[:, None]) & (self._columns <= self.most[:, None])
        sums: Floats = np.where(inside, self.weights, 0.0)
        np.cumsum(sums, axis=1, out=sums)
        empty = self.is_empty()
        found = np.empty((len(shares), self.size))
        for place, share in enumerate(shares):
            wanted = share * self.total
            bucket = (sums >= wanted[:, None]).argmax(axis=1)
            bucket = np.where(sums[:, -1] < wanted, self.most, np.maximum(bucket, self.least))
            found[place] = np.where(empty, 0.0, self._ends[bucket])
        return found

    def merged(self, rows: Rows, starts: Rows) -> "Bank":
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
        inside = (self._columns >= part.least[:, None]) & (self._columns <= part.most[:, None])
        result = Bank(self.buckets, self.half_life)
        result.size, result.reference = len(starts), newest
        result.weights = np.add.reduceat(np.where(inside, part.weights, 0.0), starts, axis=0)
        result.total = np.add.reduceat(part.total, starts)
        result.least = np.minimum.reduceat(part.least, starts)
        result.most = np.maximum.reduceat(part.most, starts)
        return result

    def shares(self) -> NDArray[np.int64]:
        """Weights for a checkpoint, [rows, buckets]: the heaviest of a row is 10000, what rounds to nothing is 0."""
        inside = (self._columns >= self.least[:, None]) & (self._columns <= self.most[:, None])
        weights = np.where(inside, self.weights, 0.0)
        heaviest = weights.max(axis=1, keepdims=True)
        found: NDArray[np.int64] = np.floor(weights * SHARES / np.where(heaviest > 0, heaviest, 1.0) + 0.5).astype(
            np.int64
        )
        return found

    def load(self, row: int, weights: Mapping[int, int], total: float, reference: float) -> None:
        """Add a checkpoint to a row. ValueError says what is wrong with it, and the row is as before."""
        if not total >= 0:
            raise ValueError(f"cannot load checkpoint with negative weight {total}")
        for index in weights:
            if not 0 <= index < self.buckets.count:
                raise ValueError(
                    f"cannot load checkpoint with bucket {index}, out of range [0,{self.buckets.count - 1}]"
                )
        self.reference[row] = reference
        sum_of_shares = sum(weights.values())
        if sum_of_shares == 0:
            return
        columns = np.array(list(weights), dtype=np.intp)
        self.weights[row, columns] += np.array(list(weights.values()), dtype=np.float64) * (total / sum_of_shares)
        self.total[row] += total
        self.least[row] = min(self.least[row], columns.min())
        self.most[row] = max(self.most[row], columns.max())
        self._tighten(np.array([row]))

    def _index(self, values: Floats) -> Rows:
        return np.searchsorted(self._lowest, values, side="right") - 1

    def _factors(self, rows: Rows, times: Floats) -> Floats:
        """By how much samples of these times count, after moving references that are too old for them."""
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
        least, most = self.least[rows, None], self.most[rows, None]
        inside = (self._columns >= least) & (self._columns <= most)
        self.weights[rows] *= np.where(inside, factors[:, None], 1.0)
        self.total[rows] *= factors
        self._tighten(rows)

    def _tighten(self, rows: Rows) -> None:
        """Move `least` and `most` of these rows inwards to buckets that count."""
        epsilon, last = self.buckets.epsilon, len(self._columns) - 1
        light = (self.weights[rows, self.least[rows]] < epsilon) | (self.weights[rows, self.most[rows]] < epsilon)
        if not light.any():
            return
        rows = np.unique(rows[light])
        counts = self.weights[rows] >= epsilon
        above = counts & (self._columns >= self.least[rows, None])
        below = counts & (self._columns <= self.most[rows, None])
        self.least[rows] = np.where(above.any(axis=1), above.argmax(axis=1), last)
        self.most[rows] = np.where(below.any(axis=1), last - below[:, ::-1].argmax(axis=1), 0)

    def _taken(self, rows: Rows) -> "Bank":
        """A bank of copies of these rows."""
        part = Bank(self.buckets, self.half_life)
        part.size = len(rows)
        for name in ("weights", "total", "reference", "least", "most"):
            setattr(part, name, getattr(self, name)[rows])
        return part


@lru_cache(maxsize=8)
def _tables(buckets: Buckets) -> tuple[Floats, Floats, NDArray[np.int16]]:
    """The smallest value of each bucket, what stands for it, and its number."""
    return np.array(lowest(buckets)), np.array(buckets.ends), np.arange(buckets.count, dtype=np.int16)


def _changed(before: Floats, after: Floats) -> tuple[Rows, Floats]:
    """Where two arrays differ, and what the second has there."""
    (rows,) = (before != after).nonzero()
    return rows, after[rows]
