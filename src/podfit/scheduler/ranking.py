"""Ranked nodes for each equivalence class of pods, and for each workload in it, kept up to date as nodes change.

The next pod of a kind costs as much as there were changes since the last, mostly one, not as much as there are nodes.
What is answered is what `decide.placement.place` answers, which `tests/scheduler/test_ranking.py` shows.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.decide.placement.equivalence import has_pod_rules, is_selected_by_others, kind_of
from podfit.decide.placement.fit_score import LEAST_ALLOCATED, FitScoring
from podfit.decide.placement.place import Placed, Unschedulable, sentence
from podfit.decide.placement.soft_spread import SoftConstraints, soft_constraints
from podfit.decide.placement.view import Resident
from podfit.scheduler.cache import ClusterCache, Key
from podfit.scheduler.kind_ranking import KindRanking, best
from podfit.scheduler.spread_ranking import SpreadRanking

MOST_KINDS = 32
MOST_WORKLOADS = 64
SLICE = 200
"""Nodes that are judged in one go: some milliseconds."""


class _Question(msgspec.Struct, frozen=True):
    """What a pod asks: the class that it is of, and its constraints that only prefer, about pods of its namespace."""

    kind: Hashable
    namespace: str
    soft: SoftConstraints | None

    @property
    def workload(self) -> Hashable:
        return self.kind, self.namespace, self.soft


class Rankings:
    def __init__(self, cache: ClusterCache, weights: Mapping[str, int], fit: FitScoring = LEAST_ALLOCATED) -> None:
        self._cache, self._weights, self._fit = cache, weights, fit
        self._kinds: OrderedDict[Hashable, KindRanking] = OrderedDict()
        self._workloads: OrderedDict[Hashable, SpreadRanking] = OrderedDict()
        self._alone: OrderedDict[tuple[str, bytes], int] = OrderedDict()
        self._asked: tuple[Resident, _Question | None] | None = None

    def place(self, key: Key, subject: Resident) -> Placed | Unschedulable | None:
        """None for a pod that has to be compared with the others: it is of no kind."""
        question = self._question(key, subject)
        if question is None:
            return None
        kind, soft = self._current(question, subject), question.soft
        if soft is None:
            chosen = best(kind.candidates(), self._weights)
        else:
            counts = self._cache.match_counts.of(question.namespace, soft.constraints[0].selector)
            chosen = best(self._workload(question, soft).candidates(kind, self._cache, counts), self._weights)
        if chosen is None:
            return Unschedulable(sentence(kind.refusals.values(), len(self._cache)), dict(kind.refusals))
        return Placed(chosen)

    async def prepare(self, key: Key, subject: Resident) -> None:
        """Judge all nodes for a kind that is new, some at a time, so that others have their turn in between."""
        question = self._question(key, subject)
        if question is None:
            return
        known = self._kinds.get(question.kind)
        if (
            known is not None
            and known.makeup == self._cache.makeup
            and self._cache.changed_since(known.mark) is not None
        ):
            return
        fresh = self._new(question, subject)
        names = self._cache.names
        slices = [names[start : start + SLICE] for start in range(0, len(names), SLICE)]
        for part in slices:
            fresh.count_images(self._cache, part)
            await asyncio.sleep(0)
        for part in slices:
            for name in part:
                fresh.judge(self._cache, self._weights, self._fit, name)
            await asyncio.sleep(0)
        self._kinds[question.kind] = fresh  # what changed meanwhile is judged again, from its mark on

    def _question(self, key: Key, subject: Resident) -> _Question | None:
        """None for a pod that is of no kind."""
        if subject.pod.status.nominated_node_name or self._cache.is_nominated(key) or not len(self._cache):
            return None
        if self._asked is None or self._asked[0] is not subject:  # it is asked twice about each pod
            self._asked = subject, self._question_of(subject)
        return self._asked[1] if self._is_alone(subject) else None

    def _question_of(self, subject: Resident) -> _Question | None:
        if has_pod_rules(subject):
            return None
        namespace = subject.pod.metadata.namespace
        soft = soft_constraints(subject) if self._weights["PodTopologySpread"] else None
        if soft is None:
            return _Question(kind_of(subject), namespace, None)
        if any(given.selector != soft.constraints[0].selector for given in soft.constraints):
            return None
        keys = tuple(given.topology_key for given in soft.constraints)
        return _Question((kind_of(subject), keys, soft.whole), namespace, soft)

    def _new(self, question: _Question, subject: Resident) -> KindRanking:
        return KindRanking.of(self._cache, _nameless(subject), question.soft)

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

    def _current(self, question: _Question, subject: Resident) -> KindRanking:
        known, cache = self._kinds.get(question.kind), self._cache
        changed = cache.changed_since(known.mark) if known is not None and known.makeup == cache.makeup else None
        if known is None or changed is None:
            known = self._kinds[question.kind] = self._new(question, subject)
            changed = cache.names
            known.count_images(cache, changed)
        self._kinds.move_to_end(question.kind)
        if len(self._kinds) > MOST_KINDS:
            self._kinds.popitem(last=False)
        known.mark = cache.mark
        for name in dict.fromkeys(changed):
            known.judge(cache, self._weights, self._fit, name)
        return known

    def _workload(self, question: _Question, soft: SoftConstraints) -> SpreadRanking:
        known = self._workloads.get(question.workload)
        if known is None:
            known = self._workloads[question.workload] = SpreadRanking(soft)
            if len(self._workloads) > MOST_WORKLOADS:
                self._workloads.popitem(last=False)
        self._workloads.move_to_end(question.workload)
        return known


def _nameless(subject: Resident) -> Resident:
    """For all of its kind: a nomination is a pod's own by its UID."""
    return replace(subject, pod=replace(subject.pod, metadata=replace(subject.pod.metadata, uid="")))
