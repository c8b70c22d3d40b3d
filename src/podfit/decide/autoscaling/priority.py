"""The update priority: which pods are updated, and in which order (V-081 to V-084)."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from podfit.api.autoscaling_k8s.v1 import (
    EvictionRequirement,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.core.durations import parse_duration, short_duration
from podfit.core.options import AT_LEAST_0, Bound, Option, Unit
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.core.times import parse_time
from podfit.decide.autoscaling.container_view import WHOLE, sized, statuses_of
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.oom import KILLED
from podfit.decide.autoscaling.patches import OBSERVED
from podfit.decide.autoscaling.policies import is_off, names_of, policy_of, recommended

HIGHER = "TargetHigherThanRequests"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


_SPAN = Unit(
    name="duration",
    read=lambda text: timedelta(seconds=parse_duration(text)),
    text=lambda span: short_duration(span.total_seconds()),
)
_LONG = Bound("more than 0", lambda span: span > timedelta(0))


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """`update` is the share by which a pod within its bounds has to differ, after `lifetime`."""

    update: Annotated[
        float,
        Option("What a pod within its bounds differs by, as a share.", flag="pod-update-threshold", bound=AT_LEAST_0),
    ] = 0.1
    lifetime: Annotated[
        timedelta,
        Option(
            "How old a pod within its bounds is.",
            flag="in-recommendation-bounds-eviction-lifetime-threshold",
            unit=_SPAN,
            bound=_LONG,
        ),
    ] = timedelta(hours=12)
    quick_oom: Annotated[
        timedelta,
        Option(
            "An OOM so soon after the start is acted on.", flag="evict-after-oom-threshold", unit=_SPAN, bound=_LONG
        ),
    ] = timedelta(minutes=10)


class Priority(msgspec.Struct, frozen=True, kw_only=True):
    """`difference` is the sum over resources of how far, as a share, the target is from what the pod requests."""

    outside_range: bool = False
    scale_up: bool = False
    difference: float = 0.0
    quick_oom: bool = False

    @property
    def order(self) -> tuple[bool, float]:
        """Sort key: pods that need more come first, then those that differ more."""
        return not self.scale_up, -self.difference


def priority(
    pod: Pod, vpa: VerticalPodAutoscaler, recommendation: RecommendedPodResources | None, gates: Gates, by: Thresholds
) -> Priority:
    """The priority of a pod with the recommendation that was processed for it."""
    outside = up = False
    wanted, asked = dict[str, int](), dict[str, int]()
    for own, resources in _seen(pod, recommendation):
        for resource, target in resources.target.items():
            request = own.requests.get(resource)
            wanted[resource] = wanted.get(resource, 0) + target.milli()
            asked[resource] = asked.get(resource, 0) + (request or ZERO).milli()
            if not request:
                outside = up = True
                continue
            up = up or target.milli() > request.milli()
            outside = outside or is_below(request, resources, resource) or is_above(request, resources, resource)
    difference = sum(abs(max(asked[name], 1) - wanted[name]) / max(asked[name], 1) for name in wanted)
    quick = any(_quick_oom(status, vpa, gates, by) for status in _observed_statuses(pod))
    return Priority(outside_range=outside, scale_up=up, difference=difference, quick_oom=quick)


def is_below(request: Quantity | None, bounds: RecommendedContainerResources, resource: str) -> bool:
    """Whether less is requested than is recommended at least."""
    lower = bounds.lower_bound.get(resource)
    return not request or (lower is not None and request < lower)


def is_above(request: Quantity | None, bounds: RecommendedContainerResources, resource: str) -> bool:
    """Whether more is requested than is recommended at most."""
    upper = bounds.upper_bound.get(resource)
    return request is not None and upper is not None and request > upper


def accepted(
    pod: Pod, candidate: Priority, now: datetime, by: Thresholds, *, upstream_compatible: bool = False
) -> bool:
    """Whether to change the pod now; not when nothing would change, which upstream forgets outside of bounds."""
    return not left_because(pod, candidate, now, by, upstream_compatible=upstream_compatible)


def left_because(
    pod: Pod, candidate: Priority, now: datetime, by: Thresholds, *, upstream_compatible: bool = False
) -> str:
    """Why not to change the pod now; empty when it is to be changed."""
    if not candidate.difference and (candidate.quick_oom or not upstream_compatible):
        return "it has what is recommended for it"
    if candidate.outside_range or candidate.quick_oom:
        return ""
    started = pod.status.start_time
    old = started is not None and now - parse_time(started) >= by.lifetime
    if old and candidate.difference >= by.update:
        return ""
    hours = by.lifetime.total_seconds() / 3600
    return (
        f"it is within the bounds, where pods are left that are not older than {hours:g} hours or differ by less than "
        f"{by.update * 100:g} %"
    )


def admitted(pod: Pod, vpa: VerticalPodAutoscaler, recommendation: RecommendedPodResources | None) -> bool:
    """Whether a container fulfils all eviction requirements of the VPA."""
    policy = vpa.spec.update_policy
    if policy is None:
        return True
    for container, own, *_ in sized(pod, names_of(recommendation)):
        resources = recommended(recommendation, container.name)
        if resources is None:
            continue
        if not own.requests.get(CPU) or not own.requests.get(MEMORY):
            return True
        if all(_holds(requirement, resources, own) for requirement in policy.eviction_requirements):
            return True
    return False


def _holds(
    requirement: EvictionRequirement, resources: RecommendedContainerResources, own: ResourceRequirements
) -> bool:
    for name in requirement.resources:
        target, request = resources.target.get(name, ZERO), own.requests.get(name, ZERO)
        if target > request if requirement.change_requirement == HIGHER else target < request:
            return True
    return False


def observed(pod: Pod) -> frozenset[str] | None:
    """The containers that there were when the pod was admitted; None when that is not known."""
    text = pod.metadata.annotations.get(OBSERVED)
    if text is None:
        return None
    names = text.split(", ") if text else []
    return frozenset(names) if all(_LABEL.fullmatch(name) for name in names) else None


def _counts(names: frozenset[str] | None, container: str) -> bool:
    return names is None or container in names or container == WHOLE


def _seen(
    pod: Pod, recommendation: RecommendedPodResources | None
) -> Iterator[tuple[ResourceRequirements, RecommendedContainerResources]]:
    names = observed(pod)
    for container, own, *_ in sized(pod, names_of(recommendation)):
        resources = recommended(recommendation, container.name)
        if resources is not None and _counts(names, container.name):
            yield own, resources


def _observed_statuses(pod: Pod) -> Iterable[ContainerStatus]:
    names = observed(pod)
    return (status for status in statuses_of(pod) if _counts(names, status.name))


def _quick_oom(status: ContainerStatus, vpa: VerticalPodAutoscaler, gates: Gates, by: Thresholds) -> bool:
    """Whether a container last ran out of memory soon after it started."""
    end, update = status.last_state.terminated, vpa.spec.update_policy
    if end is None or end.reason != KILLED or end.started_at is None or end.finished_at is None:
        return False
    if is_off(policy_of(vpa.spec.resource_policy, status.name)):
        return False
    threshold = by.quick_oom
    if gates.per_vpa_config and update is not None and update.evict_after_oom_seconds is not None:
        threshold = timedelta(seconds=update.evict_after_oom_seconds)
    return parse_time(end.finished_at) - parse_time(end.started_at) < threshold


def any_lower(after: RecommendedPodResources | None, before: RecommendedPodResources) -> bool:
    """Whether a target is lower than it was."""
    for recommendation in after.container_recommendations if after else ():
        other = recommended(before, recommendation.container_name)
        if other and any(_below(target, other.target.get(name)) for name, target in recommendation.target.items()):
            return True
    return False


def _below(amount: Quantity, other: Quantity | None) -> bool:
    return other is not None and amount < other
