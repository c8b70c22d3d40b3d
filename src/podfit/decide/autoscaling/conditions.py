"""Conditions of a VPA that are there while they are true: those of the updater, and the helper that sets one."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import (
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCondition,
    VerticalPodAutoscalerStatus,
)
from podfit.api.meta.owners import ObjectIdentity
from podfit.core.times import format_time
from podfit.decide.autoscaling.policies import observes, observing_text


def with_condition(
    status: VerticalPodAutoscalerStatus, name: str, reason: str, message: str, now: str
) -> VerticalPodAutoscalerStatus:
    """The status with a condition that is true, or without it when there is no message. Its time stays as long as it is
    true."""
    kept = [condition for condition in status.conditions if condition.type != name]
    before = next((condition for condition in status.conditions if condition.type == name), None)
    if message:
        since = before.last_transition_time if before is not None and before.status == "True" else now
        said = VerticalPodAutoscalerCondition(
            type=name, status="True", last_transition_time=since, reason=reason, message=message
        )
        kept.append(said)
    return replace(status, conditions=tuple(sorted(kept, key=lambda condition: condition.type)))


CAPPED = "podfit.dev/CappedToNode"
"""The recommender's: no node is as large as what would be recommended."""
ASKED_FOR = "podfit.dev/VerticalFirst"
"""The recommender's: an HPA asks for the size, which it lets grow before it adds replicas."""
AGGREGATED, MANY = "podfit.dev/Aggregated", "ManySlices"
"""The recommender's: some slices of its pods have no sizes of their own."""
OBSERVING, WINDOW = "podfit.dev/Observing", "ObservationWindow"
"""The recommender's: the VPA is new, and only observes yet."""
IN_PLACE_BY_DEFAULT = "podfit.dev/InPlaceByDefault"
"""Its mode says Recreate and its pods are resized in place; once said it stays."""
TOO_FEW_REPLICAS = "podfit.dev/TooFewReplicas"
"""Pods wait since a workload has fewer than `minReplicas`."""
MEMORY_IN_USE = "podfit.dev/MemoryInUse"
"""A memory limit is to come down, and the node does not lower it below what is used."""
BURST_REFUSED = "podfit.dev/BurstRefused"
"""The API grants pods no burst ceiling, or not what their node has moved."""
REASONS = {
    IN_PLACE_BY_DEFAULT: "PodResized",
    TOO_FEW_REPLICAS: "MinReplicas",
    MEMORY_IN_USE: "LimitBelowUsage",
    BURST_REFUSED: "CeilingRefused",
}
PASSING = (TOO_FEW_REPLICAS, MEMORY_IN_USE, BURST_REFUSED)
IN_PLACE_TEXT = (
    "Its mode is Recreate or Auto; pods are resized in place where that works, and evicted where it does not. The "
    "annotation podfit.dev/update-mode: upstream makes the updater evict as the mode says."
)
NAMED = 5
"""How many are named; the others are counted."""


def said_while_observing(
    status: VerticalPodAutoscalerStatus, vpa: VerticalPodAutoscaler, now: datetime
) -> VerticalPodAutoscalerStatus:
    """The status with a condition that says until when pods are left as they are, and new ones made as they are
    written."""
    text = observing_text(vpa) if observes(vpa, now) else ""
    return with_condition(status, OBSERVING, WINDOW, text[:1].upper() + text[1:], format_time(now))


def said_of_slices(
    status: VerticalPodAutoscalerStatus, sized: int, more: int, now: datetime
) -> VerticalPodAutoscalerStatus:
    """The status with a condition while there are more slices than have sizes of their own."""
    text = f"{sized} of {sized + more} slices have sizes of their own; pods of the others have those of all pods."
    return with_condition(status, AGGREGATED, MANY, text if more else "", format_time(now))


def too_few(live: Mapping[ObjectIdentity, int], minimum: int) -> str:
    """The message about workloads and how many pods each has."""
    found = _some([f"{owner.kind} {owner.name} has {number}" for owner, number in sorted(live.items(), key=_by_name)])
    return (
        f"Fewer pods than minReplicas, {minimum}: {found}. None is evicted, or resized where that restarts a container."
    )


def memory_in_use(pods: Sequence[str]) -> str:
    """The message about pods by name."""
    return (
        f"Memory limits of {_some(pods)} stay: more is used than they are to be. The node tries again; pods are not "
        "evicted for it, since they would start with that limit."
    )


def burst_refused(said: Sequence[str]) -> Mapping[str, str]:
    """The condition, where pods are named with what was said of them."""
    return {BURST_REFUSED: f"These pods have no burst ceiling: {_some(said)}"} if said else {}


def _by_name(counted: tuple[ObjectIdentity, int]) -> tuple[str, str]:
    owner, _ = counted
    return owner.kind, owner.name


def _some(every: Sequence[str]) -> str:
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + more


def with_conditions(
    status: VerticalPodAutoscalerStatus, wanted: Mapping[str, str], now: str
) -> VerticalPodAutoscalerStatus:
    """The status with those in `wanted`, by type their message, and without those that have passed. What is said
    already stays."""
    for name in (*PASSING, *wanted):
        status = with_condition(status, name, REASONS[name], wanted.get(name, ""), now)
    return status
