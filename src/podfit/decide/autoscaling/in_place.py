"""In-place updates: what a pod's resize stands for, and what the updater does next (V-100 to V-106)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import NamedTuple

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.groups import Group
from podfit.decide.autoscaling.policies import IN_PLACE
from podfit.decide.autoscaling.priority import any_lower
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.resize.memory_shrink import CANNOT_LOWER
from podfit.decide.resize.restart_policy import restarting

LONGEST = {
    ResizeStage.DEFERRED: timedelta(minutes=5),
    ResizeStage.IN_PROGRESS: timedelta(hours=1),
    ResizeStage.PROPOSED: timedelta(hours=1),
}
"""How long a resize may stand there before the pod may be evicted."""


class Decision(Enum):
    APPROVED = "Approved"
    DEFERRED = "Deferred"
    EVICT = "Evict"
    INFEASIBLE = "Infeasible"
    INFEASIBLE_CACHED = "InfeasibleCached"
    WAITS_FOR_MEMORY = "WaitsForMemory"
    """Not upstream's: only something else than what it waits for is asked of it."""


WORDS = {
    ResizeStage.DEFERRED: "deferred",
    ResizeStage.INFEASIBLE: "infeasible",
    ResizeStage.IN_PROGRESS: "in progress",
    ResizeStage.ERROR: "in error",
    ResizeStage.PROPOSED: "not judged yet by its node",
}
NO_GROUP = "its workload wants no pods, or has fewer of them than minReplicas"
FEW = "its workload has fewer pods than minReplicas"
MEMORY = "a memory limit is to come down, more than that is used, and the node tries again"
CACHED = "its node can never give what is recommended; it is tried again when less is"


class Judgement(NamedTuple):
    """`reason` says why a pod is left, where the decision leaves it."""

    decision: Decision
    reason: str = ""


def stage_of(pod: Pod, *, upstream_compatible: bool = False) -> ResizeStage:
    """Upstream takes what a node said about an older size for its verdict on today's, and evicts for it."""
    state = ResizeState.of(pod)
    return state.last_stage if upstream_compatible else state.stage


def stalled(stage: ResizeStage, since: datetime | None, now: datetime) -> bool:
    """Whether a resize has not come to an end for so long, since it was first seen, that the pod may be evicted."""
    if stage is ResizeStage.NONE:
        return False
    longest = LONGEST.get(stage)
    return longest is None or (since is not None and now - since > longest)


def waits_for_memory(pod: Pod) -> bool:
    """Whether its node does not lower a memory limit below what is used, and tries again."""
    state = ResizeState.of(pod)
    return state.stage is ResizeStage.ERROR and state.error.startswith(CANNOT_LOWER)


def resizing(pod: Pod) -> str:
    """What a resize of a pod that is not done stands at, in words."""
    state = ResizeState.of(pod)
    said = state.pending or state.progress
    text = f": {said.message}" if said is not None and said.message else ""
    return f"a resize is {WORDS.get(state.stage, 'not done')}{text}"


def protected(
    pod: Pod, group: Group | None, since: datetime | None, now: datetime, *, upstream_compatible: bool = False
) -> str:
    """Why a pod may not be evicted now, empty when it may; pending ones do not count as a disruption."""
    if group is None:
        return NO_GROUP
    if pod.status.phase == "Pending":
        return ""
    if group.below_minimum:
        return FEW
    stage = stage_of(pod, upstream_compatible=upstream_compatible)
    if waits_for_memory(pod) and not upstream_compatible:
        return MEMORY
    if stage is not ResizeStage.NONE and not stalled(stage, since, now):
        return resizing(pod)
    return "" if group.disruptable else group.shortage


def restarts_nothing(pod: Pod) -> bool:
    """Whether no container is restarted by a resize."""
    return not any(restarting(scaled.container) for scaled in every_container(pod))


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
) -> Judgement:
    """What becomes of a pod that is to change in place; `infeasible` has, by UID, what a node could never give.

    Upstream evicts a pod whose memory limit its node does not lower below what is used; it would start with that limit.
    """
    if group is None or pod.status.phase == "Pending" or recommendation is None:
        nothing = "nothing is recommended" if recommendation is None else "it does not run yet"
        return Judgement(Decision.DEFERRED, NO_GROUP if group is None else nothing)
    before = infeasible.get(pod.metadata.uid)
    if mode == IN_PLACE and before is not None and not any_lower(recommendation, before):
        return Judgement(Decision.INFEASIBLE_CACHED, CACHED)
    if waits_for_memory(pod) and not upstream_compatible:
        if group.disruptable or restarts_nothing(pod):
            return Judgement(Decision.WAITS_FOR_MEMORY, MEMORY)
        return Judgement(Decision.DEFERRED, group.shortage)
    stage = stage_of(pod, upstream_compatible=upstream_compatible)
    if stage is not ResizeStage.NONE:
        if mode == IN_PLACE:
            return Judgement(
                Decision.INFEASIBLE if stage is ResizeStage.INFEASIBLE else Decision.DEFERRED, resizing(pod)
            )
        if stalled(stage, since, now) and group.disruptable and not group.below_minimum:
            return Judgement(Decision.EVICT)
        return Judgement(Decision.DEFERRED, resizing(pod))
    return _undisturbed(pod, group, skip_disruption_budget=skip_disruption_budget)


def _undisturbed(pod: Pod, group: Group, *, skip_disruption_budget: bool) -> Judgement:
    """The decision on a pod whose resize is over, or that has none."""
    if skip_disruption_budget and restarts_nothing(pod):
        return Judgement(Decision.APPROVED)
    if group.below_minimum and not skip_disruption_budget and not restarts_nothing(pod):
        return Judgement(Decision.DEFERRED, f"{FEW}, and a resize may restart a container")
    return Judgement(Decision.APPROVED) if group.disruptable else Judgement(Decision.DEFERRED, group.shortage)
