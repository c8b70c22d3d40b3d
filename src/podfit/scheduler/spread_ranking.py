"""Ranked nodes of one workload: those of its equivalence class, told apart by how many of its pods they have.

A class is shared by all workloads whose pods are alike; this is what one of them adds. Nodes without a pod of its own
stay in copies of the heaps of the class, so a workload costs what its pods and the changes since the last one do.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from podfit.decide.placement.soft_spread import Share, SoftConstraints, points
from podfit.scheduler.cache import ClusterCache
from podfit.scheduler.kind_ranking import Candidate, Entry, Group, KindRanking, most_entries


class _Level(msgspec.Struct):
    """Nodes of a group with so many matching pods; `size` are those that have some. Its heap is as a group's."""

    group: Group
    count: int
    heap: list[Entry]
    size: int = 0


class SpreadRanking:
    """Ask it with the class up to date. All constraints have the same selector."""

    def __init__(self, soft: SoftConstraints) -> None:
        self._soft = soft
        self._kind: KindRanking | None = None
        self._counts: Mapping[str, int] = {}
        self._mark = self._pushed = 0
        self._empty: dict[Group, _Level] = {}  # nodes without matching pods
        self._levels: dict[tuple[Group, int], _Level] = {}  # those with some, as long as there are any
        self._level_of: dict[str, _Level] = {}  # of nodes that fit and have matching pods
        self._shares: dict[str, Share] = {}
        self._totals: tuple[Counter[str], ...] = ()
        self._weighed: tuple[int, list[Group]] = 0, []
        self._weights: tuple[float, ...] = ()

    def candidates(self, kind: KindRanking, cache: ClusterCache, counts: Mapping[str, int]) -> Sequence[Candidate]:
        """`counts` are the matching pods by node."""
        self._refresh(kind, cache, counts)
        self._weigh(kind)
        found, costs = list[tuple[_Level, int | None, Entry]](), list[int]()
        for level in self._occupied(kind):
            domains, cost = level.group[2], None
            if domains is not None:
                here = (level.count,) * len(domains)
                costs.append(cost := self._soft.cost(domains, here, self._totals, self._weights))
            if (top := self._top(kind, level)) is not None:
                found.append((level, cost, top))
        least, most = min(costs, default=0), max(costs, default=0)
        return [(level.group, 0 if cost is None else points(cost, least, most), top) for level, cost, top in found]

    def _weigh(self, kind: KindRanking) -> None:
        """The weights of the constraints, which seldom change."""
        scored = [group for group, size in kind.sizes.items() if size and group[2] is not None]
        weighed = sum(kind.sizes[group] for group in scored), scored
        if weighed != self._weighed:
            domains = {domains for _, _, domains in scored if domains is not None}
            self._weighed, self._weights = weighed, self._soft.weights(domains, weighed[0])

    def _occupied(self, kind: KindRanking) -> list[_Level]:
        """The levels that nodes are on."""
        left, occupied = dict(kind.sizes), list(self._levels.values())
        for level in occupied:
            left[level.group] -= level.size
        return occupied + [self._empty[group] for group, size in left.items() if size > 0]

    def _refresh(self, kind: KindRanking, cache: ClusterCache, counts: Mapping[str, int]) -> None:
        changed = cache.changed_since(self._mark)
        known = kind is self._kind and counts is self._counts
        if not known or changed is None or len(changed) > len(cache) // 2 + 8 or self._pushed > most_entries(cache):
            self._kind, self._counts = kind, counts
            self._begin(kind)
            changed = list(counts)
        for name in dict.fromkeys(changed):
            self._take(kind, cache, name)
        self._mark = cache.mark

    def _begin(self, kind: KindRanking) -> None:
        self._empty = {group: _Level(group, 0, list(heap)) for group, heap in kind.heaps.items() if kind.top(group)}
        self._levels, self._level_of, self._shares, self._pushed = {}, {}, {}, 0
        self._totals = tuple(Counter() for _ in self._soft.constraints)

    def _take(self, kind: KindRanking, cache: ClusterCache, name: str) -> None:
        if (before := self._level_of.pop(name, None)) is not None:
            before.size -= 1
            if not before.size:
                del self._levels[before.group, before.count]
        count, place = self._counts.get(name, 0), kind.places.get(name)
        self._share(name, self._share_of(kind, cache, name, count) if count else ())
        if place is None:
            return
        group, score = place
        if count:
            level = self._levels.get((group, count)) or self._levels.setdefault(
                (group, count), _Level(group, count, [])
            )
            level.size += 1
            self._level_of[name] = level
        else:
            level = self._empty.get(group) or self._empty.setdefault(group, _Level(group, 0, []))
        heapq.heappush(level.heap, (-score, name))
        self._pushed += 1  # what was there before is out of date then

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

    def _top(self, kind: KindRanking, level: _Level) -> Entry | None:
        """The best node of the level. What is out of date before it is dropped."""
        heap, group, count = level.heap, level.group, level.count
        while heap:
            negative, name = heap[0]
            if kind.places.get(name) == (group, -negative) and self._counts.get(name, 0) == count:
                return heap[0]
            heapq.heappop(heap)
        return None
