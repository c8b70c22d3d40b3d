"""The plan to make room for a deferred resize: which neighbours shrink or end (docs/room.md).

    plan(deferred, neighbours, allocatable, targets) ──▶ Enough       there is room, or it is on its way
                                                     ├─▶ Plan         who shrinks to what, who is evicted afterwards
                                                     └─▶ Impossible   nothing that is allowed would help

A neighbour gives only if its priority is lower, it has a target, and no resize of its own waits or is under way. The
lowest priority gives first, then whoever has most to give, and all together no more than is missing. Eviction is for
what shrinking cannot free, and spares everyone who can be spared, the higher priority before the lower.

`targets` is by pod UID and container. Today they are the pods' minimums; a recommendation would enter in their place.
"""

from collections.abc import Callable, Collection, Mapping

import msgspec

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import add, only, positive, subtract
from podfit.decide.node.room.minimum import MinimumSize
from podfit.decide.node.room.shrinkable import Shrink, shrink, slack
from podfit.decide.pod.allocated import overlay
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.resize import by_status
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.queue_order import increases

Targets = Mapping[str, Mapping[str, MinimumSize]]


class NothingNeeded(msgspec.Struct, frozen=True):
    """There will be room without anyone being asked."""


class RoomPlan(msgspec.Struct, frozen=True):
    """All of it is needed: first the shrinks, in order, then the evictions, in order."""

    missing: ResourceList
    shrinks: tuple[Shrink, ...]
    victims: tuple[Pod, ...] = ()


class Impossible(msgspec.Struct, frozen=True):
    """`available` is what lower-priority neighbours could give of it by shrinking; nobody is asked for any."""

    missing: ResourceList
    available: ResourceList


class _Neighbour(msgspec.Struct, frozen=True):
    """`holds` is what it will count for when what is under way has happened, `gives` the most it can give of that."""

    pod: Pod
    holds: ResourceList
    gives: ResourceList

    @property
    def least(self) -> ResourceList:
        return positive(subtract(self.holds, self.gives))


def waits_for_room(pod: Pod) -> bool:
    """Whether the node has deferred the pod's present desire because there is too little room."""
    lacks_room = ResizeState.of(pod).shortage is not None
    return lacks_room and keeps_node(pod) and pod.metadata.deletion_timestamp is None


def keeps_node(pod: Pod) -> bool:
    """Whether the pod counts on a node, also while it is going."""
    return bool(pod.spec.node_name) and not has_ended(pod)


def allocated_form(pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> Pod:
    """The pod at the size that its node reports to have allocated."""
    return overlay(pod, by_status.allocated(pod, gates), gates)


def plan(
    deferred: Pod,
    neighbours: Collection[Pod],
    allocatable: ResourceList,
    targets: Targets,
    *,
    evict: bool = False,
    gates: FeatureGates = DEFAULT_GATES,
) -> NothingNeeded | RoomPlan | Impossible:
    """`neighbours` are the other active pods of the node; `evict` allows to end some where shrinking is not enough."""
    wanted = pod_requests(deferred, gates=gates)
    others = [_neighbour(pod, targets.get(pod.metadata.uid, {}), deferred, gates) for pod in neighbours]

    def suffices(gone: Collection[_Neighbour]) -> bool:
        """Whether there is room once these are gone and everyone else gives all it can."""
        return not verdicts.short_by(wanted, allocatable, [other.least for other in others if not _among(other, gone)])

    missing = verdicts.short_by(wanted, allocatable, [other.holds for other in others])
    if not missing:
        return NothingNeeded()
    victims: list[_Neighbour] = []
    if not suffices(victims):
        may_end = [other for other in others if evict and _may_end(other, deferred)]
        if not suffices(may_end):
            return Impossible(missing, only(add(*(other.gives for other in others)), missing))
        victims = _fewest(may_end, missing, suffices)
    staying = [other for other in others if not _among(other, victims)]
    left = verdicts.short_by(wanted, allocatable, [neighbour.holds for neighbour in staying])
    ended = tuple(victim.pod for victim in sorted(victims, key=_turn))
    return RoomPlan(missing, _shrinks(staying, left, targets, gates), ended)


def _neighbour(pod: Pod, targets: Mapping[str, MinimumSize], deferred: Pod, gates: FeatureGates) -> _Neighbour:
    if pod.metadata.deletion_timestamp is not None:
        return _Neighbour(pod, {}, {})
    allocated = allocated_form(pod, gates)
    held = pod_requests(allocated, gates=gates, use_status=True)
    if not _moves(pod, allocated, gates):
        return _Neighbour(pod, held, slack(pod, targets, gates) if _priority(pod) < _priority(deferred) else {})
    if _stands_still(pod) or increases(pod, allocated):
        return _Neighbour(pod, held, {})
    return _Neighbour(pod, pod_requests(pod, gates=gates), {})


def _moves(pod: Pod, allocated: Pod, gates: FeatureGates) -> bool:
    """Whether a resize of its own waits or is under way."""
    waits = ResizeState.of(pod).stage is not ResizeStage.NONE
    return waits or pod_requests(pod, gates=gates) != pod_requests(allocated, gates=gates)


def _stands_still(pod: Pod) -> bool:
    """Whether the node refuses the resize, fails at it or has yet to judge it, so that it cannot be counted on."""
    return ResizeState.of(pod).stage not in (ResizeStage.NONE, ResizeStage.IN_PROGRESS)


def _may_end(neighbour: _Neighbour, deferred: Pod) -> bool:
    return (
        bool(neighbour.holds)
        and _priority(neighbour.pod) < _priority(deferred)
        and deferred.spec.preemption_policy != "Never"
        and not is_mirror(neighbour.pod)
    )


def _fewest(
    may_end: list[_Neighbour], missing: ResourceList, suffices: Callable[[Collection[_Neighbour]], bool]
) -> list[_Neighbour]:
    """Level by level from the lowest priority: the smallest that is enough alone, or else the largest and another one.

    Then whoever turns out not to be needed is spared, the highest priority first.
    """

    def size(neighbour: _Neighbour) -> tuple[list[Quantity], str]:
        return _amounts(neighbour.holds, missing), _name(neighbour.pod)

    victims, left = list[_Neighbour](), list(may_end)
    while not suffices(victims):
        lowest = min(_priority(neighbour.pod) for neighbour in left)
        level = [neighbour for neighbour in left if _priority(neighbour.pod) == lowest]
        alone = [neighbour for neighbour in level if suffices([*victims, neighbour])]
        chosen = min(alone, key=size) if alone else max(level, key=size)
        victims.append(chosen)
        left = [neighbour for neighbour in left if neighbour is not chosen]
    for candidate in sorted(victims, key=_turn, reverse=True):
        fewer = [victim for victim in victims if victim is not candidate]
        if suffices(fewer):
            victims = fewer
    return victims


def _shrinks(
    staying: list[_Neighbour], missing: ResourceList, targets: Targets, gates: FeatureGates
) -> tuple[Shrink, ...]:
    shrinks, left = list[Shrink](), dict(missing)
    turns = sorted(
        staying, key=lambda neighbour: (_priority(neighbour.pod), _most_first(neighbour, missing), _name(neighbour.pod))
    )
    for turn in turns:
        wanted = {name: amount for name, amount in left.items() if name in turn.gives}
        if wanted:
            shrinks.append(shrink(turn.pod, targets[turn.pod.metadata.uid], wanted, gates))
            left = positive(subtract(left, only(shrinks[-1].given, left)))
    return tuple(shrinks)


def _most_first(neighbour: _Neighbour, missing: ResourceList) -> list[Quantity]:
    return [-amount for amount in _amounts(neighbour.gives, missing)]


def _amounts(held: ResourceList, missing: ResourceList) -> list[Quantity]:
    """The amounts that are missing, in the order in which they are reported."""
    return [held.get(name, ZERO) for name in missing]


def _among(neighbour: _Neighbour, some: Collection[_Neighbour]) -> bool:
    return any(neighbour is other for other in some)


def _turn(neighbour: _Neighbour) -> tuple[int, str]:
    return _priority(neighbour.pod), _name(neighbour.pod)


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def why_not(verdict: Impossible, *, evict: bool) -> str:
    """What is said of a pod for which no room can be made."""
    could = _listed(verdict.available) or "nothing"
    text = f"Resize lacks {_listed(verdict.missing)}; neighbours of lower priority can give {could}"
    return text + (", and evicting them would not be enough" if evict else "")


def _listed(resources: ResourceList) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in resources.items())
