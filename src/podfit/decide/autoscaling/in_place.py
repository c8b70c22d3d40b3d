"""In-place updates: the state of a pod's resize, and what the updater does next (V-100 to V-106)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.groups import Group
from podfit.decide.autoscaling.policies import IN_PLACE
from podfit.decide.autoscaling.priority import any_lower
from podfit.decide.resize.memory_shrink import CANNOT_LOWER

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
LONGEST = {"Deferred": timedelta(minutes=5), "InProgress": timedelta(hours=1)}
"""How long a resize may stand there before the pod may be evicted."""


class State(Enum):
    NONE = "None"
    DEFERRED = "Deferred"
    INFEASIBLE = "Infeasible"
    IN_PROGRESS = "InProgress"
    ERROR = "Error"
    UNKNOWN = "Unknown"


class Decision(Enum):
    APPROVED = "Approved"
    DEFERRED = "Deferred"
    EVICT = "Evict"
    INFEASIBLE = "Infeasible"
    INFEASIBLE_CACHED = "InfeasibleCached"
    WAITS_FOR_MEMORY = "WaitsForMemory"
    """Not upstream's: only something else than what it waits for is asked of it."""


def state_of(pod: Pod) -> State:
    conditions = [condition for condition in pod.status.conditions if condition.type in (PENDING, IN_PROGRESS)]
    if not conditions or conditions[0].status != "True":
        return State.NONE
    pending = next((condition for condition in conditions if condition.type == PENDING), None)
    if pending is not None:
        return {"Deferred": State.DEFERRED, "Infeasible": State.INFEASIBLE}.get(pending.reason, State.UNKNOWN)
    progress = conditions[0]
    if not progress.reason and not progress.message:
        return State.IN_PROGRESS
    return State.ERROR if progress.reason == "Error" else State.UNKNOWN


def stalled(state: State, since: datetime | None, now: datetime) -> bool:
    """Whether a resize has not come to an end for so long, since it was first seen, that the pod may be evicted."""
    if state is State.NONE:
        return False
    longest = LONGEST.get(state.value)
    return longest is None or (since is not None and now - since > longest)


def waits_for_memory(pod: Pod) -> bool:
    """Whether its node does not lower a memory limit below what is used, and tries again."""
    return state_of(pod) is State.ERROR and any(
        condition.type == IN_PROGRESS and condition.message.startswith(CANNOT_LOWER)
        for condition in pod.status.conditions
    )


def evictable(
    pod: Pod, group: Group | None, since: datetime | None, now: datetime, *, upstream_compatible: bool = False
) -> bool:
    """Whether a pod may be evicted now; pending ones do not count as a disruption."""
    if group is None:
        return False
    if pod.status.phase == "Pending":
        return True
    state = state_of(pod)
    waits = state is not State.NONE and not stalled(state, since, now)
    waits = waits or (waits_for_memory(pod) and not upstream_compatible)
    return not group.below_minimum and not waits and group.disruptable


def restarts_nothing(pod: Pod) -> bool:
    """Whether no container is restarted by a resize."""
    policies = (policy for scaled in every_container(pod) for policy in scaled.container.resize_policy)
    return not any(policy.restart_policy == "RestartContainer" for policy in policies)


def decide(
    pod: Pod,
    mode: str,
    group: Group | None,
    recommendation: RecommendedPodResources | None,
    infeasible: Mapping[str, RecommendedPodResources],
    *,
    since: datetime | None,
    now: datetime,
    skip_disruption_budget: bool,
    upstream_compatible: bool = False,
) -> Decision:
    """What becomes of a pod that is to change in place; `infeasible` has, by UID, what a node could never give.

    Upstream evicts a pod whose memory limit its node does not lower below what is used; it would start with that limit.
    """
    if group is None or pod.status.phase == "Pending" or recommendation is None:
        return Decision.DEFERRED
    before = infeasible.get(pod.metadata.uid)
    if mode == IN_PLACE and before is not None and not any_lower(recommendation, before):
        return Decision.INFEASIBLE_CACHED
    if waits_for_memory(pod) and not upstream_compatible:
        free = group.disruptable or restarts_nothing(pod)
        return Decision.WAITS_FOR_MEMORY if free else Decision.DEFERRED
    state = state_of(pod)
    if state is not State.NONE:
        if mode == IN_PLACE:
            return Decision.INFEASIBLE if state is State.INFEASIBLE else Decision.DEFERRED
        evict = stalled(state, since, now) and group.disruptable and not group.below_minimum
        return Decision.EVICT if evict else Decision.DEFERRED
    if skip_disruption_budget and restarts_nothing(pod):
        return Decision.APPROVED
    if group.below_minimum and not skip_disruption_budget and not restarts_nothing(pod):
        return Decision.DEFERRED
    return Decision.APPROVED if group.disruptable else Decision.DEFERRED
