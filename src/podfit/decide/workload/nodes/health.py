"""Node health: silence and conditions as taints."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node, NodeCondition, Taint
from podfit.api.core.v1.pods.types import Pod

GRACE, STARTUP_GRACE = 50.0, 60.0
"""Seconds without a sign of life; the second for a node that has not been heard of since the controller began."""
READY = "Ready"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
_WATCHED = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
}
_OURS = {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()}
_SEVERAL, _PARTIAL, _LARGE = 2, 0.55, 50


def condition(node: Node, kind: str) -> NodeCondition | None:
    return next((condition for condition in node.status.conditions if condition.type == kind), None)


def ready(node: Node) -> str:
    """True, False or Unknown; empty when the node has never said."""
    found = condition(node, READY)
    return found.status if found is not None else ""


def lost(node: Node, stamp: str) -> tuple[NodeCondition, ...]:
    """The conditions of a node of which nothing is heard: nobody knows."""
    conditions = list(node.status.conditions)
    for kind in _WATCHED:
        found = condition(node, kind)
        if found is None:
            made = NodeCondition(
                type=kind,
                status="Unknown",
                reason="NodeStatusNeverUpdated",
                message="Kubelet never posted node status.",
                last_heartbeat_time=node.metadata.creation_timestamp,
                last_transition_time=stamp,
            )
            conditions.append(made)
        elif found.status != "Unknown":
            changed = replace(
                found,
                status="Unknown",
                reason="NodeStatusUnknown",
                message="Kubelet stopped posting node status.",
                last_transition_time=stamp,
            )
            conditions[conditions.index(found)] = changed
    return tuple(conditions)


def wanted_taints(node: Node, *, evict: bool, stamp: str) -> tuple[Taint, ...]:
    """The node's taints as its conditions want them, others as they are. `evict`: pods may be sent away for it now."""
    wanted = {(key, NO_SCHEDULE) for kind, key in _PRESSURES.items() if _is_true(node, kind)}
    if node.spec.unschedulable:
        wanted.add((UNSCHEDULABLE, NO_SCHEDULE))
    if (sick := {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready(node))) is not None:
        wanted.add((sick, NO_SCHEDULE))
        if evict or any((taint.key, taint.effect) in _executing() for taint in node.spec.taints):
            wanted.add((sick, NO_EXECUTE))
    kept = [taint for taint in node.spec.taints if not _is_ours(taint) or (taint.key, taint.effect) in wanted]
    present = {(taint.key, taint.effect) for taint in kept}
    added = [Taint(key=key, effect=effect, time_added=stamp) for key, effect in sorted(wanted - present)]
    return (*kept, *added)


def without_eviction(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """When no node is heard of, it is the network or this controller: nobody is sent away."""
    return tuple(taint for taint in taints if (taint.key, taint.effect) not in _executing())


def _executing() -> set[tuple[str, str]]:
    return {(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)}


def _is_ours(taint: Taint) -> bool:
    return taint.key in _OURS and (taint.effect == NO_SCHEDULE or (taint.key, taint.effect) in _executing())


def _is_true(node: Node, kind: str) -> bool:
    found = condition(node, kind)
    return found is not None and found.status == "True"


def zone_of(node: Node) -> tuple[str, str]:
    """Region and zone."""
    labels = node.metadata.labels
    return labels.get("topology.kubernetes.io/region", ""), labels.get("topology.kubernetes.io/zone", "")


def pause(nodes: Sequence[Node], zone: tuple[str, str]) -> float | None:
    """Seconds between two nodes of a zone whose pods are sent away; None for never.

    Upstream's rates: one in ten seconds. Where most of a zone is not ready: none in a small zone, one in a hundred
    seconds in a large one. None at all when no node of any zone is ready.
    """
    if not any(ready(node) == "True" for node in nodes):
        return None
    there = [node for node in nodes if zone_of(node) == zone]
    sick = sum(ready(node) != "True" for node in there)
    if sick < len(there) and sick > _SEVERAL and sick / len(there) >= _PARTIAL:
        return 100.0 if len(there) > _LARGE else None
    return 10.0


class Tainting(msgspec.Struct, frozen=True):
    """`taints` are those that the node is to have. With `evicts` its pods are sent away now, by one of them. `again`:
    seconds after which to look again."""

    taints: tuple[Taint, ...]
    evicts: bool = False
    again: float | None = None


def tainting(node: Node, nodes: Sequence[Node], *, last: float, now: float, stamp: str) -> Tainting:
    """`nodes` are all, `last` is when pods of a node of its zone were sent away, on the same clock as `now`; `stamp` is
    the time of day."""
    sick = ready(node) in ("False", "Unknown")
    between = pause(nodes, zone_of(node)) if sick else None  # one that is well is judged without a look at the others
    due = last + (between or 0)
    evict = sick and between is not None and now >= due
    taints = wanted_taints(node, evict=evict, stamp=stamp)
    if sick and not any(ready(other) == "True" for other in nodes):
        taints = without_eviction(taints)
    if taints != node.spec.taints:
        return Tainting(taints, evicts=len(without_eviction(taints)) < len(taints))
    if not sick or evict:
        return Tainting(taints)
    return Tainting(taints, again=GRACE if between is None else due - now)


def unready(pod: Pod, stamp: str) -> Pod | None:
    """The pod of a node that is not ready; None when it says so already."""
    found = next((condition for condition in pod.status.conditions if condition.type == READY), None)
    if found is None or found.status == "False":
        return None
    changed = replace(found, status="False", last_transition_time=stamp)
    conditions = tuple(changed if condition is found else condition for condition in pod.status.conditions)
    return replace(pod, status=replace(pod.status, conditions=conditions))
