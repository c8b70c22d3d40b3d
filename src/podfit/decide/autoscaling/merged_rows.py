"""Merges the aggregates of many containers at once, for recommendations and for checkpoints."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from podfit.decide.autoscaling.estimate import Merged, Overrides
from podfit.decide.autoscaling.histograms import HistogramBank, Rows
from podfit.decide.autoscaling.model import MEMORY_WEIGHT, Aggregates, Containers
from podfit.decide.autoscaling.policies import Override


class AggregateRows:
    """Containers of VPAs with the rows of their aggregates: `rows[starts[i]:starts[i+1]]` are those of `names[i]`.

    `parts[i]` is how many containers its VPA has. `names` are pairs of whatever names the VPA and of the container.
    """

    def __init__(self) -> None:
        self.names: list[tuple[Any, str]] = []
        self._rows: list[int] = []
        self._starts: list[int] = []
        self._parts: list[int] = []
        self._own: dict[int, Override] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, key: Any, rows: Mapping[str, Sequence[int]], own: Mapping[str, Override]) -> None:
        """`own` is what a policy says of some of the containers."""
        for name, row in rows.items():
            if name in own:
                self._own[len(self.names)] = own[name]
            self.names.append((key, name))
            self._starts.append(len(self._rows))
            self._rows.extend(row)
            self._parts.append(len(rows))

    @cached_property
    def rows(self) -> Rows:
        return np.array(self._rows, dtype=np.intp)

    @cached_property
    def starts(self) -> Rows:
        return np.array([*self._starts, len(self._rows)], dtype=np.intp)

    @cached_property
    def parts(self) -> Rows:
        return np.array(self._parts, dtype=np.intp)

    def overrides(self, part: slice) -> Overrides:
        found = np.full((4, part.stop - part.start), np.nan)
        if self._own:
            for row in range(part.start, part.stop):
                if (own := self._own.get(row)) is not None:
                    found[:, row - part.start] = own
        return Overrides(*found)


def merge(aggregates: Aggregates, members: AggregateRows, part: slice) -> Merged:
    """What is known of these members, each with all of its aggregates."""
    starts = members.starts[part.start : part.stop + 1]
    rows, groups = members.rows[starts[0] : starts[-1]], starts[:-1] - starts[0]
    return Merged(
        aggregates.cpu.merged(rows, groups),
        aggregates.memory.merged(rows, groups),
        np.minimum.reduceat(aggregates.first[rows], groups),
        np.maximum.reduceat(aggregates.last[rows], groups),
        np.add.reduceat(aggregates.count[rows], groups).astype(np.float64),
        members.parts[part].astype(np.float64),
        members.overrides(part),
    )


def take_out_open_windows(
    memory: HistogramBank, containers: Containers, members: AggregateRows, part: slice, now: float
) -> None:
    """Without the peaks of windows that are not over: whoever loads a checkpoint begins new ones (V-036)."""
    starts = members.starts[part.start : part.stop + 1]
    rows = members.rows[starts[0] : starts[-1]]
    slots = _open(containers, rows, now)
    whose = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.argsort(rows, kind="stable")
    rows, whose = rows[order], whose[order]
    wanted = containers.aggregate[slots]
    begin, end = np.searchsorted(rows, wanted, side="left"), np.searchsorted(rows, wanted, side="right")
    times = end - begin
    slots = np.repeat(slots, times)
    within = np.arange(len(slots)) - np.repeat(np.cumsum(times) - times, times)
    places = whose[np.repeat(begin, times) + within]
    peaks = np.maximum(containers.usage_peak[slots], containers.oom_peak[slots])
    memory.subtract(places, peaks, MEMORY_WEIGHT, containers.window_end[slots])


def _open(containers: Containers, rows: Rows, now: float) -> Rows:
    """The containers of these aggregates whose windows are not over."""
    (slots,) = (containers.slots.used & (containers.window_end > now)).nonzero()
    whose = containers.aggregate[slots]
    theirs = np.zeros(max(rows.max(initial=0), whose.max(initial=0)) + 1, dtype=np.bool_)
    theirs[rows] = True
    found: Rows = slots[theirs[whose]]
    return found
