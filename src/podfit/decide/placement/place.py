"""Scheduling of one pod: the feasible nodes, and the best of them.

Filters run in upstream's order and the first one that refuses a node speaks for it; the reasons of all nodes, counted
and sorted, make the sentence on a pod that fits nowhere. Scores prefer the node that stays emptiest and most balanced,
so two pods do not chase the same room. Equal scores go to the first name: a decision that can be repeated can be
explained.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from podfit.decide.placement.fit_score import LEAST_ALLOCATED, FitScoring
from podfit.decide.placement.node_filters import admits, has_features, has_ports, has_room
from podfit.decide.placement.pod_affinity import Neighbourhood, neighbourhood
from podfit.decide.placement.score import DEFAULT_WEIGHTS, scores
from podfit.decide.placement.spread import Spread, spread
from podfit.decide.placement.view import NamespaceLabels, NodeInfo, Refusal, Resident
from podfit.decide.placement.volumes import NO_CLAIMS, ClaimLookup, VolumeRules, objection, volume_rules

NO_NAMESPACES: NamespaceLabels = MappingProxyType({})


class Placed(msgspec.Struct, frozen=True):
    node: str


class Unschedulable(msgspec.Struct, frozen=True):
    """`refusals` by node name; `message` is the sentence of the PodScheduled condition and the event.

    `outright`: the pod itself cannot be placed, whatever the nodes are like, so preemption is not asked either.
    """

    message: str
    refusals: Mapping[str, Refusal]
    outright: bool = False

    @property
    def short_of(self) -> frozenset[str]:
        """Resources of which more, somewhere, might help."""
        return frozenset().union(*(refusal.resources for refusal in self.refusals.values()))

    @property
    def filters(self) -> frozenset[str]:
        return frozenset(refusal.filter for refusal in self.refusals.values())


class PreFilterState(msgspec.Struct, frozen=True):
    """What the rules between pods say about a newcomer; None where none applies."""

    neighbourhood: Neighbourhood | None
    spread: Spread | None

    def __bool__(self) -> bool:
        return self.neighbourhood is not None or self.spread is not None


NOBODY = PreFilterState(None, None)


def place(
    subject: Resident,
    views: Sequence[NodeInfo],
    *,
    namespaces: NamespaceLabels = NO_NAMESPACES,
    claims: ClaimLookup = NO_CLAIMS,
    weights: Mapping[str, int] = DEFAULT_WEIGHTS,
    fit: FitScoring = LEAST_ALLOCATED,
) -> Placed | Unschedulable:
    """Choose a node for a pod that waits. A node that it is nominated for goes before every other that would do."""
    if not views:
        return Unschedulable("no nodes available to schedule pods", {})
    if problem := objection(subject.pod, claims):
        missing = Refusal("VolumeBinding", (problem,), final=True)
        text = f"0/{len(views)} nodes are available: {missing.reasons[0]}. not found"
        return Unschedulable(text, {view.name: missing for view in views}, outright=True)
    refusals: dict[str, Refusal] = {}
    fitting: list[NodeInfo] = []
    surroundings, rules = pre_filter(subject, views, namespaces), volume_rules(subject.pod, claims)
    for view in views:
        refusal = refuse(subject, view, views, surroundings, namespaces, rules)
        if refusal is not None:
            refusals[view.name] = refusal
        elif view.name == subject.pod.status.nominated_node_name:
            return Placed(view.name)
        else:
            fitting.append(view)
    if not fitting:
        return Unschedulable(sentence(refusals.values(), len(views)), refusals)
    if len(fitting) == 1:
        return Placed(fitting[0].name)
    ranks = zip(scores(subject, fitting, views, namespaces, weights, fit=fit), fitting, strict=True)
    return Placed(min((-score, view.name) for score, view in ranks)[1])


def sentence(refusals: Iterable[Refusal], nodes: int) -> str:
    counts = Counter(reason for refusal in refusals for reason in refusal.reasons)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {listed}."


def pre_filter(subject: Resident, views: Sequence[NodeInfo], namespaces: NamespaceLabels) -> PreFilterState:
    return PreFilterState(neighbourhood(subject.pod, views, namespaces), spread(subject, views))


def refuse(
    subject: Resident,
    view: NodeInfo,
    views: Sequence[NodeInfo],
    surroundings: PreFilterState,
    namespaces: NamespaceLabels,
    rules: VolumeRules | None = None,
) -> Refusal | None:
    """The first objection to this node, or None. It has to do with the pods that are nominated there and without.

    Only nominated pods of at least the same priority count.
    """
    nominated = [
        resident for resident in view.nominated if resident.uid != subject.uid and resident.priority >= subject.priority
    ]
    if nominated:
        crowded = view.with_residents((*view.residents, *nominated))
        around = pre_filter(subject, replaced(views, crowded), namespaces) if surroundings else surroundings
        if refusal := _refuse_as_is(subject, crowded, around, rules):
            return refusal
    return _refuse_as_is(subject, view, surroundings, rules)


def refuse_alone(subject: Resident, view: NodeInfo) -> Refusal | None:
    """The first objection to a node for a pod that has no rules about others, and that nobody has a rule about."""
    return refuse(subject, view, (), NOBODY, NO_NAMESPACES)


def _refuse_as_is(
    subject: Resident, view: NodeInfo, surroundings: PreFilterState, rules: VolumeRules | None
) -> Refusal | None:
    pod = subject.pod
    return (
        admits(pod, view.node)
        or has_ports(subject.ports, view)
        or has_room(subject.requests, view)
        or (rules and rules.refuse(view))
        or (surroundings.spread and surroundings.spread.refuse(view))
        or (surroundings.neighbourhood and surroundings.neighbourhood.refuse(view))
        or has_features(pod, view.node)
    )


def replaced(views: Sequence[NodeInfo], changed: NodeInfo) -> list[NodeInfo]:
    return [changed if view.name == changed.name else view for view in views]
