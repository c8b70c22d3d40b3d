"""Ranked nodes of one workload: those of its equivalence class, told apart by how many of its pods they have.

A class is shared by all workloads whose pods are alike; this is what one of them adds. Nodes without a pod of its own
stay in copies of the heaps of the class, so a workload costs what its pods and the changes since the last one do.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from podfit.decide.placement.soft_spread import Share, SoftConstraints, points
from podfit.scheduler.cache import ClusterCache
from podfit.scheduler.kind_ranking import Candidate, Entry, Group, KindRanking, most_entries

Level: TypeAlias = tuple[Group, int]
"""Nodes of a group with so many matching pods."""


class SpreadRanking:
    """Ask it with the class up to date. All constraints have the same selector."""

    def __init__(self, soft: SoftConstraints) -> None:
        self._soft = soft
        self._kind: KindRanking | None = None
        self._counts: Mapping[str, int] = {}
        self._mark = 0
        self._heaps: dict[Level, list[Entry]] = {}
        self._levels: dict[str, Level] = {}  # of nodes that fit and have matching pods, as `_sizes`
        self._sizes: Counter[Level] = Counter()
        self._shares: dict[str, Share] = {}
        self._totals: tuple[Counter[str], ...] = ()

    def candidates(self, kind: KindRanking, cache: ClusterCache, counts: Mapping[str, int]) -> Sequence[Candidate]:
        """`counts` are the matching pods by node."""
        self._refresh(kind, cache, counts)
        levels = self._occupied(kind)
        scored = [group for group, _ in levels if group[2] is not None]
        nodes = sum(size for group, size in kind.sizes.items() if group[2] is not None)
        weights = self._soft.weights({domains for _, _, domains in scored if domains is not None}, nodes)
        costs = {level: self._cost(level, weights) for level in levels if level[0][2] is not None}
        least, most = min(costs.values(), default=0), max(costs.values(), default=0)
        return [
            (level[0], points(costs[level], least, most) if level in costs else 0, top)
            for level in levels
            if (top := self._top(kind, level)) is not None
        ]

    def _cost(self, level: Level, weights: Sequence[float]) -> int:
        (_, _, domains), count = level
        return self._soft.cost(domains or (), (count,) * len(weights), self._totals, weights)

    def _occupied(self, kind: KindRanking) -> list[Level]:
        """The levels that nodes are on."""
        with_pods = Counter[Group]()
        occupied = [level for level, size in self._sizes.items() if size]
        for level in occupied:
            with_pods[level[0]] += self._sizes[level]
        return occupied + [(group, 0) for group, size in kind.sizes.items() if size > with_pods[group]]

    def _refresh(self, kind: KindRanking, cache: ClusterCache, counts: Mapping[str, int]) -> None:
        changed = cache.changed_since(self._mark)
        known = kind is self._kind and counts is self._counts
        if not known or changed is None or len(changed) > len(cache) // 2 + 8 or self._is_overgrown(cache):
            self._kind, self._counts = kind, counts
            self._begin(kind)
            changed = list(counts)
        for name in dict.fromkeys(changed):
            self._take(kind, cache, name)
        self._mark = cache.mark

    def _is_overgrown(self, cache: ClusterCache) -> bool:
        """Whether too much in a heap is out of date."""
        return max(map(len, self._heaps.values()), default=0) > most_entries(cache)

    def _begin(self, kind: KindRanking) -> None:
        self._heaps = {(group, 0): list(kind.heaps[group]) for group in kind.heaps if kind.top(group) is not None}
        self._levels, self._sizes, self._shares = {}, Counter(), {}
        self._totals = tuple(Counter() for _ in self._soft.constraints)

    def _take(self, kind: KindRanking, cache: ClusterCache, name: str) -> None:
        if (before := self._levels.pop(name, None)) is not None:
            self._sizes[before] -= 1
            if not self._sizes[before]:
                del self._sizes[before], self._heaps[before]
        count, place = self._counts.get(name, 0), kind.places.get(name)
        self._share(name, self._share_of(kind, cache, name, count) if count else ())
        if place is None:
            return
        group, score = place
        level = group, count
        heapq.heappush(self._heaps.setdefault(level, []), (-score, name))
        if count:
            self._levels[name] = level
            self._sizes[level] += 1

    def _share_of(self, kind: KindRanking, cache: ClusterCache, name: str, count: int) -> Share:
        here = (count,) * len(self._totals)
        if (place := kind.places.get(name)) is not None:
            return self._soft.share_of_fitting(place[0][2], here)
        view = cache.view(name)
        return () if view is None else self._soft.share(kind.subject, view, here)

    def _share(self, name: str, share: Share) -> None:
        for counts, (value, amount) in zip(self._totals, self._shares.pop(name, ()), strict=False):
            counts[value] -= amount
        if share:
            self._shares[name] = share
            for counts, (value, amount) in zip(self._totals, share, strict=False):
                counts[value] += amount

    def _top(self, kind: KindRanking, level: Level) -> Entry | None:
        heap, (group, count) = self._heaps.get(level, []), level
        while heap:
            negative, name = heap[0]
            if kind.places.get(name) == (group, -negative) and self._counts.get(name, 0) == count:
                return heap[0]
            heapq.heappop(heap)
        return None
