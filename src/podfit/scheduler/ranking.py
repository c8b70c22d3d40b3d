"""Ranked nodes for each equivalence class of pods, kept up to date as nodes change.

The next pod of a kind costs as much as there were changes since the last, mostly one, not as much as there are nodes.
What is answered is what `decide.placement.place` answers, which `tests/scheduler/test_ranking.py` shows.

    node changed ─▶ judged again ─▶ refusal, or a score in the heap of its group
    groups: nodes with as many soft taints and as much preference, which count relative to all nodes that fit
"""

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.decide.placement.equivalence import has_pod_rules, is_selected_by_others, kind_of
from podfit.decide.placement.place import Placed, Unschedulable, refuse_alone, sentence
from podfit.decide.placement.score import (
    MOST,
    holders,
    image_names,
    local_score,
    node_preference,
    relative,
    soft_taints,
)
from podfit.decide.placement.view import Refusal, Resident
from podfit.scheduler.cache import ClusterCache, Key

MOST_KINDS = 32
SLICE = 200
"""Nodes that are judged in one go: some milliseconds."""
Group: TypeAlias = tuple[int, int]
"""Soft taints, preference."""
Place: TypeAlias = tuple[Group, int]
"""Of a node: its group, and its score by itself."""


class _Ranking(msgspec.Struct):
    """Of one kind. A heap may hold entries that are out of date: those that `places` does not confirm."""

    subject: Resident
    makeup: int
    mark: int
    images: tuple[str, ...]
    held: Mapping[str, int]
    refusals: dict[str, Refusal] = msgspec.field(default_factory=dict)
    places: dict[str, Place] = msgspec.field(default_factory=dict)
    heaps: dict[Group, list[tuple[int, str]]] = msgspec.field(default_factory=dict)


class Rankings:
    def __init__(self, cache: ClusterCache, weights: Mapping[str, int]) -> None:
        self._cache, self._weights = cache, weights
        self._kinds: OrderedDict[bytes, _Ranking] = OrderedDict()
        self._alone: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    def place(self, key: Key, subject: Resident) -> Placed | Unschedulable | None:
        """None for a pod that has to be compared with the others: it is of no kind."""
        if not self._is_ranked(key, subject):
            return None
        ranking = self._current(kind_of(subject), subject)
        best = self._best(ranking)
        if best is None:
            return Unschedulable(sentence(ranking.refusals.values(), len(self._cache)), dict(ranking.refusals))
        return Placed(best)

    async def prepare(self, key: Key, subject: Resident) -> None:
        """Judge all nodes for a kind that is new, some at a time, so that others have their turn in between."""
        if not self._is_ranked(key, subject):
            return
        kind = kind_of(subject)
        known = self._kinds.get(kind)
        if (
            known is not None
            and known.makeup == self._cache.makeup
            and self._cache.changed_since(known.mark) is not None
        ):
            return
        fresh = self._new(subject)
        names = [view.name for view in self._cache.views()]
        for start in range(0, len(names), SLICE):
            for name in names[start : start + SLICE]:
                self._judge(fresh, name)
            await asyncio.sleep(0)
        self._kinds[kind] = fresh  # what changed meanwhile is judged again, from its mark on

    def _is_ranked(self, key: Key, subject: Resident) -> bool:
        if subject.pod.status.nominated_node_name or self._cache.is_nominated(key) or not len(self._cache):
            return False
        return not has_pod_rules(subject) and self._is_alone(subject)

    def _new(self, subject: Resident) -> _Ranking:
        images = image_names(subject.pod)
        held = holders(images, self._cache.views())
        return _Ranking(_nameless(subject), self._cache.makeup, self._cache.mark, images, held)

    def _is_alone(self, subject: Resident) -> bool:
        """Whether nobody who runs has a rule about it: remembered for pods of the same namespace and labels."""
        if not self._cache.choosy:
            return True
        meta = subject.pod.metadata
        about = meta.namespace, msgspec.json.encode(sorted(meta.labels.items()))
        if self._alone.get(about) == self._cache.choices:
            return True
        if is_selected_by_others(subject, self._cache.choosy.values(), self._cache.namespaces):
            return False
        self._alone[about] = self._cache.choices
        if len(self._alone) > MOST_KINDS:
            self._alone.popitem(last=False)
        return True

    def _current(self, kind: bytes, subject: Resident) -> _Ranking:
        known, cache = self._kinds.get(kind), self._cache
        changed = cache.changed_since(known.mark) if known is not None and known.makeup == cache.makeup else None
        if known is None or changed is None:
            known = self._kinds[kind] = self._new(subject)
            changed = [view.name for view in cache.views()]
        self._kinds.move_to_end(kind)
        if len(self._kinds) > MOST_KINDS:
            self._kinds.popitem(last=False)
        known.mark = cache.mark
        for name in dict.fromkeys(changed):
            self._judge(known, name)
        return known

    def _judge(self, ranking: _Ranking, name: str) -> None:
        ranking.places.pop(name, None)
        ranking.refusals.pop(name, None)
        view, subject = self._cache.view(name), ranking.subject
        if view is None:
            return
        if (refusal := refuse_alone(subject, view)) is not None:
            ranking.refusals[name] = refusal
            return
        score = local_score(subject, view, ranking.images, ranking.held, len(self._cache), self._weights)
        group = soft_taints(subject.pod, view), node_preference(subject.pod, view)
        ranking.places[name] = group, score
        heap = ranking.heaps.setdefault(group, [])
        heapq.heappush(heap, (-score, name))
        if len(heap) > 2 * len(self._cache) + 64:
            heap[:] = {(-worth, node) for node, (where, worth) in ranking.places.items() if where == group}
            heapq.heapify(heap)

    def _best(self, ranking: _Ranking) -> str | None:
        """The highest score; of equals the first name."""
        tops = {group: top for group, heap in ranking.heaps.items() if (top := self._top(ranking, group, heap))}
        if not tops:
            return None
        most_taints, most_wanted = (max(group[index] for group in tops) for index in (0, 1))
        taints, wanted = self._weights["TaintToleration"], self._weights["NodeAffinity"]
        return min(
            (
                negative - taints * (MOST - relative(group[0], most_taints)) - wanted * relative(group[1], most_wanted),
                name,
            )
            for group, (negative, name) in tops.items()
        )[1]

    def _top(self, ranking: _Ranking, group: Group, heap: list[tuple[int, str]]) -> tuple[int, str] | None:
        while heap:
            negative, name = heap[0]
            if ranking.places.get(name) == (group, -negative):
                return heap[0]
            heapq.heappop(heap)
        return None


def _nameless(subject: Resident) -> Resident:
    """For all of its kind: a nomination is a pod's own by its UID."""
    return replace(subject, pod=replace(subject.pod, metadata=replace(subject.pod.metadata, uid="")))
