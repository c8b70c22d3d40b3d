"""Ranked nodes of one equivalence class of pods: who refuses it, and the others by what each is worth by itself.

node changed ─▶ judged again ─▶ refusal, or a score in the heap of its group
groups: nodes that are alike in all that is scored relative to the other nodes that fit
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from podfit.decide.placement.fit_score import FitScoring
from podfit.decide.placement.place import refuse_alone
from podfit.decide.placement.score import holders, image_names, local_score, node_preference, relative, soft_taints
from podfit.decide.placement.soft_spread import MOST, Domains, SoftConstraints
from podfit.decide.placement.view import Refusal, Resident
from podfit.scheduler.cache import ClusterCache

Group: TypeAlias = tuple[int, int, Domains | None]
"""Soft taints, preference, domains of the soft spread constraints (None where those do not score the node)."""
Place: TypeAlias = tuple[Group, int]
"""Of a node: its group, and its score by itself."""
Entry: TypeAlias = tuple[int, str]
"""Of a heap: the negative score, and the node; the best is the first."""
Candidate: TypeAlias = tuple[Group, int, Entry]
"""The best of alike nodes: their group, their points for spreading, the node."""


class KindRanking(msgspec.Struct):
    """A heap may hold entries that are out of date: those that `places` does not confirm."""

    subject: Resident
    soft: SoftConstraints | None
    makeup: int
    mark: int
    images: tuple[str, ...]
    held: Counter[str] = msgspec.field(default_factory=Counter)
    """On how many nodes each of the images is."""
    refusals: dict[str, Refusal] = msgspec.field(default_factory=dict)
    places: dict[str, Place] = msgspec.field(default_factory=dict)
    heaps: dict[Group, list[Entry]] = msgspec.field(default_factory=dict)
    sizes: Counter[Group] = msgspec.field(default_factory=Counter)
    """Nodes of each group; a group that none is in any more may be left with 0."""

    @staticmethod
    def of(cache: ClusterCache, subject: Resident, soft: SoftConstraints | None) -> "KindRanking":
        """A ranking with no node counted or judged yet."""
        return KindRanking(subject, soft, cache.makeup, cache.mark, image_names(subject.pod))

    def count_images(self, cache: ClusterCache, names: Iterable[str]) -> None:
        """Counts the images of all nodes, each once, before the first is judged."""
        self.held.update(holders(self.images, (view for name in names if (view := cache.view(name)) is not None)))

    def judge(self, cache: ClusterCache, weights: Mapping[str, int], fit: FitScoring, name: str) -> None:
        if (before := self.places.pop(name, None)) is not None:
            self.sizes[before[0]] -= 1
        self.refusals.pop(name, None)
        view, subject = cache.view(name), self.subject
        if view is None:
            return
        if (refusal := refuse_alone(subject, view)) is not None:
            self.refusals[name] = refusal
            return
        score = local_score(subject, view, self.images, self.held, len(cache), weights, fit=fit)
        domains = self.soft.domains(view.labels) if self.soft is not None else ()
        group = soft_taints(subject.pod, view), node_preference(subject.pod, view), domains
        self.places[name] = group, score
        self.sizes[group] += 1
        heap = self.heaps.setdefault(group, [])
        heapq.heappush(heap, (-score, name))
        if len(heap) > most_entries(cache):
            heap[:] = {(-worth, node) for node, (where, worth) in self.places.items() if where == group}
            heapq.heapify(heap)

    def top(self, group: Group) -> Entry | None:
        """The best node of the group. What is out of date before it is dropped."""
        heap = self.heaps[group]
        while heap:
            negative, name = heap[0]
            if self.places.get(name) == (group, -negative):
                return heap[0]
            heapq.heappop(heap)
        return None

    def candidates(self) -> Sequence[Candidate]:
        """Where nothing is to be spread."""
        return [(group, 0, top) for group in self.heaps if (top := self.top(group)) is not None]


def most_entries(cache: ClusterCache) -> int:
    """The most entries of a heap, before what is out of date in it is dropped."""
    return 2 * len(cache) + 64


def best(candidates: Iterable[Candidate], weights: Mapping[str, int]) -> str | None:
    """The node of the highest score; of equals the first name."""
    candidates = tuple(candidates)
    if not candidates:
        return None
    most_taints = max(taints for (taints, _, _), _, _ in candidates)
    most_wanted = max(wanted for (_, wanted, _), _, _ in candidates)
    tainted, preferred, spread = (weights[name] for name in ("TaintToleration", "NodeAffinity", "PodTopologySpread"))
    return min(
        (
            negative
            - tainted * (MOST - relative(group[0], most_taints))
            - preferred * relative(group[1], most_wanted)
            - spread * points,
            name,
        )
        for group, points, (negative, name) in candidates
    )[1]
