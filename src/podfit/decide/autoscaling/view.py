"""Builds the updater's view of a VPA from what is there, for the updater's informers and for a snapshot alike."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources, VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import ObjectIdentity
from podfit.core.times import parse_time
from podfit.decide.autoscaling.groups import owner_of
from podfit.decide.autoscaling.update import View
from podfit.decide.pod.burst_ceiling import at_floor
from podfit.decide.pod.resize_state import ResizeStage, ResizeState

NOTHING_REMEMBERED: Mapping[str, RecommendedPodResources] = {}


def concerned(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods that an updater looks at: on a node, not ended, not being deleted."""
    return tuple(pod for pod in pods if pod.spec.node_name and is_active(pod))


def view_of(
    vpa: VerticalPodAutoscaler,
    pods: Iterable[Pod],
    limit_ranges: Iterable[LimitRange],
    now: datetime,
    *,
    wanted: Callable[[ObjectIdentity], int | None],
    since: Mapping[str, datetime],
    infeasible: Mapping[str, RecommendedPodResources] = NOTHING_REMEMBERED,
    disturbs: bool = True,
    places_first: bool = False,
) -> View:
    """`pods` are those that the VPA controls, `wanted` says how many a controller is to have, None when it does not.
    One that bursts counts as it was sized: what it was raised to for a while says nothing about its proportions.
    """
    pods = tuple(map(at_floor, concerned(pods)))
    owners = {owner for pod in pods if (owner := owner_of(pod)) is not None}
    numbers = {owner: wanted(owner) for owner in owners}
    return View(
        vpa=vpa,
        pods=pods,
        configured={owner: number for owner, number in numbers.items() if number is not None},
        now=now,
        limit_ranges=tuple(sorted(limit_ranges, key=lambda limit_range: limit_range.metadata.name)),
        since=since,
        infeasible=infeasible,
        disturbs=disturbs,
        places_first=places_first,
    )


def since_conditions(pods: Iterable[Pod], now: datetime) -> dict[str, datetime]:
    """Since when pods, by UID, are resizing as their conditions tell. An updater counts from when it first saw it."""
    return {pod.metadata.uid: _since(pod, now) for pod in pods if ResizeState.of(pod).stage is not ResizeStage.NONE}


def _since(pod: Pod, now: datetime) -> datetime:
    state = ResizeState.of(pod)
    times = (said.last_transition_time for said in (state.pending, state.progress) if said is not None)
    return max((parse_time(time) for time in times if time), default=now)
