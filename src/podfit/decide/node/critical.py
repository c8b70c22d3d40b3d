"""Preemption for critical pods: which pods of a node end so that one that is new or grows fits (R-117).

Static and mirror pods and those of system priority may end others, if too little room is all that stands against them.
As few Guaranteed pods as possible are ended, then as few Burstable ones, then BestEffort ones. Within a class the next
victim is the pod that leaves least of what is still missing, of equals the smaller one. What is to end already counts
as gone, so a pod that waits for its room does not end more with every look at the node.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import ResourceList, positive, subtract
from podfit.decide.pod.system_priority import is_critical
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.neighbours import NOBODY, Neighbour, others_of
from podfit.decide.resize.verdict import Deferred, Fits, NodeView

PREEMPTING, PREEMPTED = "Preempting", "Preempted in order to admit critical pod"
"""Reason and message of a victim's end."""
DISRUPTED = "Pod was preempted by Kubelet to accommodate a critical pod."
_ONE = Quantity.of(1)


class Occupant(msgspec.Struct, frozen=True):
    """A pod that holds room of the node. `going` says that it will end without being told, or was told."""

    pod: Pod
    counts: Neighbour
    going: bool = False


class Preempts(msgspec.Struct, frozen=True):
    """There will be room once the victims are gone; none means that others are on their way out already.

    `signal` is the first resource that is short, for the metric.
    """

    victims: tuple[Pod, ...]
    signal: str


def preemption(
    pod: Pod, refusal: Deferred, node: NodeView, occupants: Collection[Occupant], reserved: Sequence[Neighbour] = ()
) -> Preempts | None:
    """What a critical pod may do about its refusal; None when it has to take it. `pod` is not among the occupants.

    `reserved` is what is kept for other critical pods that are not on the node yet.
    """
    short_by = dict(refusal.short_by)
    if not is_critical(pod) or not short_by or not isinstance(verdicts.admit(pod, node, NOBODY), Fits):
        return None
    if verdicts.ports_taken(pod, others_of(occupant.counts for occupant in occupants)) is not None:
        return None
    staying = [occupant for occupant in occupants if not occupant.going]
    missing = verdicts.shortage(pod, node, others_of([*(occupant.counts for occupant in staying), *reserved]))
    victims = _victims([occupant for occupant in staying if _yields(occupant.pod, pod)], missing)
    return None if victims is None else Preempts(tuple(victim.pod for victim in victims), next(iter(short_by)))


def _yields(other: Pod, pod: Pod) -> bool:
    """Whoever is not critical, and of the critical ones whose priority is lower; a static pod may have none."""
    mine, theirs = pod.spec.priority, other.spec.priority
    return not is_critical(other) or (mine is not None and theirs is not None and theirs < mine)


def _victims(candidates: Sequence[Occupant], missing: ResourceList) -> list[Occupant] | None:
    """None when not even all of them are enough."""
    classes: Mapping[str, list[Occupant]] = {name: [] for name in ("BestEffort", "Burstable", "Guaranteed")}
    for candidate in candidates:
        classes[candidate.pod.status.qos_class].append(candidate)
    best_effort, burstable, guaranteed = classes.values()
    if _left(missing, candidates):
        return None
    last = _nearest(guaranteed, _left(missing, [*best_effort, *burstable]))
    then = _nearest(burstable, _left(missing, [*best_effort, *last]))
    first = _nearest(best_effort, _left(missing, [*then, *last]))
    return _needed([*first, *then, *last], missing)


def _nearest(candidates: Iterable[Occupant], missing: ResourceList) -> list[Occupant]:
    """One after the other, whoever leaves least of what is missing, until nothing is."""
    chosen, rest = list[Occupant](), list(candidates)
    while missing:
        best = min(rest, key=lambda occupant: (_distance(occupant, missing), _size(occupant), occupant.counts.name))
        chosen.append(best)
        rest = [occupant for occupant in rest if occupant is not best]
        missing = _left(missing, [best])
    return chosen


def _needed(victims: list[Occupant], missing: ResourceList) -> list[Occupant]:
    """Without those that turn out to be superfluous, the higher class spared first."""
    for victim in reversed(victims):
        fewer = [other for other in victims if other is not victim]
        if not _left(missing, fewer):
            victims = fewer
    return victims


def _left(missing: ResourceList, gone: Iterable[Occupant]) -> dict[str, Quantity]:
    """What is still missing once these are gone."""
    left = dict(missing)
    for occupant in gone:
        left = positive(subtract(left, {name: _holds(occupant, name) for name in left}))
    return left


def _distance(occupant: Occupant, missing: ResourceList) -> Fraction:
    """The part of each resource that would be left, squared: no resource weighs more for being counted in bytes."""
    left = _left(missing, [occupant])
    return sum((Fraction(left[name].nano, missing[name].nano) ** 2 for name in left), Fraction(0))


def _size(occupant: Occupant) -> tuple[Quantity, Quantity]:
    return _holds(occupant, "memory"), _holds(occupant, "cpu")


def _holds(occupant: Occupant, name: str) -> Quantity:
    return _ONE if name == "pods" else occupant.counts.requests.get(name, ZERO)
