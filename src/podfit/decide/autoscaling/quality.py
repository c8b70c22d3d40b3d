"""The quality of recommendations: usage beside what was recommended for it when it came (V-121).

What is recommended is remembered by aggregate, before any policy bounds it. Samples are counted into histograms of
Prometheus many at a time; amounts are cores and bytes, differences are relative to the recommendation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.histograms import Floats, Rows
from podfit.decide.autoscaling.policies import recommended, size_log2
from podfit.decide.autoscaling.status import Estimated
from podfit.decide.autoscaling.tracked import VpaKey

CORES = tuple(0.01 * 2**power for power in range(17))
BYTES = tuple(1e6 * 2**power for power in range(17))
_STEPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
RELATIVE = (*(-step for step in reversed(_STEPS)), 0.0, *_STEPS, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
NO_VPA = -1
Labels: TypeAlias = tuple[str, ...]


class Counts:
    """A histogram for each combination of labels; `bounds` are the upper ones of its buckets."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._found: dict[Labels, tuple[NDArray[np.int64], float]] = {}

    def add(self, labels: Labels, values: Floats) -> None:
        if not len(values):
            return
        counts, total = self._found.get(labels, (np.zeros(len(self.bounds) + 1, dtype=np.int64), 0.0))
        places = np.searchsorted(self.bounds, values, side="left")
        self._found[labels] = counts + np.bincount(places, minlength=len(counts)), total + float(values.sum())

    def read(self) -> Iterator[tuple[Labels, Sequence[float], Sequence[int], float]]:
        for labels, (counts, total) in self._found.items():
            yield labels, self.bounds, counts.tolist(), total


class Quality:
    """`modes` are the update modes that there are. The labels of each member are those of its metric, in order."""

    def __init__(self, modes: Sequence[str]) -> None:
        self._modes = tuple(modes)
        self._mode = np.empty(0, dtype=np.int8)
        self._targets: dict[str, Floats] = {CPU: np.empty(0), MEMORY: np.empty(0)}
        self._created: Floats = np.empty(0)
        self.missing: dict[Labels, int] = {}
        """update_mode, resource, is_oom"""
        self.differences = Counts(RELATIVE)
        """update_mode, resource, is_oom"""
        self.changes = Counts(RELATIVE)
        """update_mode, resource, vpa_size_log2"""
        self.recommendations = {CPU: Counts(CORES), MEMORY: Counts(BYTES)}
        """update_mode; of memory also is_oom"""
        self.over = {CPU: Counts(CORES), MEMORY: Counts(BYTES)}
        """update_mode, recommendation_missing; of memory also is_oom"""
        self.lower = {CPU: Counts(CORES), MEMORY: Counts(BYTES)}
        """The same, where no more was recommended than was used."""

    def mode(self, name: str) -> int:
        return self._modes.index(name) if name in self._modes else NO_VPA

    def begin(self, rows: Rows, modes: NDArray[np.int8], created: Floats) -> None:
        """VPAs of whose aggregates nothing has been recommended yet."""
        more = len(created) - len(self._mode)
        if more > 0:
            self._mode = np.concatenate((self._mode, np.full(more, NO_VPA, dtype=np.int8)))
            self._created = np.concatenate((self._created, np.full(more, np.nan)))
            self._targets = {
                name: np.concatenate((array, np.full(more, np.nan))) for name, array in self._targets.items()
            }
        self._mode[rows] = modes

    def recommended(
        self, rows: Rows, modes: NDArray[np.int8], sizes: Rows, targets: Mapping[str, Floats], created: Floats
    ) -> None:
        """What is recommended now, in place of all that was: by row its VPA's mode and size, and what, NaN for nothing.

        `created` says of every row there is when it was made: one that was given back and taken again is another one.
        """
        same = self._created[rows[rows < len(self._created)]] == created[rows[rows < len(self._created)]]
        for resource, target in targets.items():
            before = self._targets[resource]
            known = np.full(len(rows), np.nan)
            known[rows < len(before)] = np.where(same, before[rows[rows < len(before)]], np.nan)
            changed = (known > 0) & np.isfinite(target)
            change = (target[changed] - known[changed]) / known[changed]
            for mode, size in {*zip(modes[changed].tolist(), sizes[changed].tolist(), strict=True)}:
                theirs = (modes[changed] == mode) & (sizes[changed] == size)
                self.changes.add((self._modes[mode], resource, str(size)), change[theirs])
            self._targets[resource] = np.full(len(created), np.nan)
            self._targets[resource][rows] = target
        self._mode = np.full(len(created), NO_VPA, dtype=np.int8)
        self._mode[rows] = modes
        self._created = created.copy()

    def used(self, resource: str, rows: Rows, amounts: Floats, *, oom: bool = False) -> None:
        """Samples of these aggregates, in cores or bytes. Those of no VPA do not count."""
        there = rows < len(self._mode)
        rows, amounts = rows[there], amounts[there]
        modes, wanted = self._mode[rows], self._targets[resource][rows]
        more = (str(oom).lower(),) if resource == MEMORY else ()
        for code, mode in enumerate(self._modes):
            theirs = modes == code
            known = theirs & (wanted > 0)
            unknown, used, target = amounts[theirs & ~known], amounts[known], wanted[known]
            labels = (mode, resource, str(oom).lower())
            if len(unknown):
                self.missing[labels] = self.missing.get(labels, 0) + len(unknown)
                self.lower[resource].add((mode, "true", *more), unknown)
            self.differences.add(labels, (used - target) / target)
            self.recommendations[resource].add((mode, *more), target)
            over = target > used
            self.over[resource].add((mode, "false", *more), (target - used)[over])
            self.lower[resource].add((mode, "false", *more), (used - target)[~over])


def begin(quality: Quality, state: ClusterState, modes: Mapping[VpaKey, str]) -> None:
    """VPAs that are new, with their modes: until something is recommended for them, it is missing."""
    members = state.members(modes)
    codes = np.array([quality.mode(modes[key]) for key, _ in members.names], dtype=np.int8)
    quality.begin(members.rows, codes.repeat(np.diff(members.starts)), state.model.aggregates.created)


def remember(
    quality: Quality, state: ClusterState, found: Mapping[VpaKey, Estimated], modes: Mapping[VpaKey, str]
) -> None:
    """What is recommended for these VPAs, uncapped, as it was estimated."""
    members = state.members(found)
    rows, cores, memory = [], [], []
    for key, container in members.names:
        one, unknown = recommended(found[key].recommendation, container), found[key].unknown
        amounts = one.uncapped_target if one is not None else {}
        rows.append((quality.mode(modes[key]), size_log2(state.pods_of(key))))
        known = {name: amount for name, amount in amounts.items() if (container, name) not in unknown}
        cores.append(known[CPU].milli() / 1000 if CPU in known else np.nan)
        memory.append(float(known[MEMORY].value()) if MEMORY in known else np.nan)
    times = np.diff(members.starts)
    mode, size = np.array(rows, dtype=np.intp).reshape(-1, 2).repeat(times, axis=0).T
    targets = {CPU: np.array(cores).repeat(times), MEMORY: np.array(memory).repeat(times)}
    quality.recommended(members.rows, mode.astype(np.int8), size, targets, state.model.aggregates.created)
