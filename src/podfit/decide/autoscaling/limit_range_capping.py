"""Fits a VPA's recommendation to one pod: LimitRanges, the policy and, where asked for, its limits.

    recommendation ─▶ LimitRange of the pod ─▶ for each container: LimitRange, policy, current limit

A step that has no value to work on leaves it absent (upstream ends there, or writes 0 or -1), and bounds stay around
the target (upstream scales the three apart, so that a pod is changed again and again).
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy, RecommendedContainerResources, RecommendedPodResources
from podfit.api.core.v1.limits.types import LimitRange, LimitRangeItem
from podfit.api.core.v1.pods.aggregate import aggregate, requests_of
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.autoscaling.capping import at_least, at_most
from podfit.decide.autoscaling.container_view import WHOLE, amount_of, every_container, sized, units
from podfit.decide.autoscaling.limit_ranges import effective, proportional_limit, request_bounds
from podfit.decide.autoscaling.policies import NO_ANNOTATIONS, RESOURCES, policy_of, recommended, scaled_limits

_LISTS = ("upper_bound", "target", "lower_bound")


class Processed(msgspec.Struct, frozen=True):
    """`notes` by container say what moved its target."""

    recommendation: RecommendedPodResources | None
    notes: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def for_pod(
    pod: Pod,
    recommendation: RecommendedPodResources | None,
    policy: PodResourcePolicy | None,
    limit_ranges: Iterable[LimitRange],
    annotations: Mapping[str, str] = NO_ANNOTATIONS,
) -> Processed:
    """V-061, V-062. Containers that the pod does not have are dropped; `annotations` are the VPA's."""
    if recommendation is None:
        return Processed(None if policy is None else RecommendedPodResources())
    limit_ranges = tuple(limit_ranges)
    whole, each_one = effective(limit_ranges, "Pod"), effective(limit_ranges, "Container")
    if (level := recommended(recommendation, WHOLE)) is not None:
        return _as_a_whole(pod, level, policy, whole, annotations)
    if whole is not None:
        recommendation = _within_pod(pod, recommendation, whole)
    found, notes = [], {}
    containers = {scaled.container.name: scaled.own for scaled in every_container(pod)}
    for resources in recommendation.container_recommendations:
        own = containers.get(resources.container_name)
        if own is not None:
            capped, said = _within_container(resources, own, policy, each_one, annotations)
            found.append(capped)
            if said:
                notes[resources.container_name] = said
    return Processed(RecommendedPodResources(container_recommendations=tuple(found)), notes)


def _as_a_whole(
    pod: Pod,
    resources: RecommendedContainerResources,
    policy: PodResourcePolicy | None,
    item: LimitRangeItem | None,
    annotations: Mapping[str, str],
) -> Processed:
    """AEP 9988: within the LimitRange of the pod, that of containers does not count; and no less than its containers
    request together, which the API refuses.
    """
    scaled = next(sized(pod, (WHOLE,)))
    capped, said = _within_container(resources, scaled.own, policy, item, annotations, "pod")
    together = aggregate(pod.spec, requests_of)
    raised = [at_least(amounts, together) for amounts in (capped.target, capped.lower_bound, capped.upper_bound)]
    said += tuple(
        f"{name} raised to what containers request" for name in capped.target if raised[0][name] != capped.target[name]
    )
    found = replace(capped, target=raised[0], lower_bound=raised[1], upper_bound=raised[2])
    return Processed(RecommendedPodResources(container_recommendations=(found,)), {WHOLE: said} if said else {})


def _within_container(
    resources: RecommendedContainerResources,
    own: ResourceRequirements,
    policy: PodResourcePolicy | None,
    item: LimitRangeItem | None,
    annotations: Mapping[str, str],
    whose: str = "container",
) -> tuple[RecommendedContainerResources, tuple[str, ...]]:
    mine = policy_of(policy, resources.container_name)
    least, most = request_bounds(own, item) if item else ({}, {})
    steps = [(at_least, least, f"fit Min in {whose} LimitRange"), (at_most, most, f"fit Max in {whose} LimitRange")]
    if mine is not None:
        steps += [(at_least, mine.min_allowed, "minAllowed"), (at_most, mine.max_allowed, "maxAllowed")]
    follow = scaled_limits(mine, resources.container_name, annotations)
    fixed = {name: limit for name, limit in own.limits.items() if name not in follow}
    if fixed:
        steps.append((at_most, fixed, f"{whose} limit"))
    notes: list[str] = []
    for cap, bounds, reason in steps:
        capped = cap(resources.target, bounds)
        notes += [f"{name} capped to {reason}" for name in capped if capped[name] != resources.target[name]]
        resources = replace(
            resources,
            target=capped,
            lower_bound=cap(resources.lower_bound, bounds),
            upper_bound=cap(resources.upper_bound, bounds),
        )
    return resources, tuple(notes)


def _within_pod(pod: Pod, recommendation: RecommendedPodResources, item: LimitRangeItem) -> RecommendedPodResources:
    """Scale all containers so that the sum of their limits is within the LimitRange of the pod."""
    every = list(recommendation.container_recommendations)
    containers = {scaled.container.name: scaled.own for scaled in every_container(pod)}
    for container, own, _, _, sidecar in every_container(pod):
        if not sidecar and own.requests and recommended(recommendation, container.name) is None:
            every.append(RecommendedContainerResources(container_name=container.name, target=own.requests))
    for name in RESOURCES:
        for bound in _LISTS:
            every = _scaled(every, containers, item, name, bound)
    return RecommendedPodResources(container_recommendations=tuple(map(_ordered, every)))


def _scaled(
    every: list[RecommendedContainerResources],
    containers: Mapping[str, ResourceRequirements],
    item: LimitRangeItem,
    name: str,
    bound: str,
) -> list[RecommendedContainerResources]:
    amounts: list[ResourceList] = [getattr(resources, bound) for resources in every]
    inside = [resources.container_name in containers for resources in every]
    total = limits = 0
    for resources, listed, counts in zip(every, amounts, inside, strict=True):
        if counts:
            own, amount = containers[resources.container_name], listed.get(name)
            total += units(name, amount)
            limits += units(name, proportional_limit(name, own, amount, item.default.get(name)))
    scale = _scale(total, limits, units(name, item.min.get(name)), units(name, item.max.get(name)))
    if scale is None:
        return every
    return [
        replace(resources, **{bound: {**listed, name: _times(name, listed[name], *scale)}})
        if counts and name in listed
        else resources
        for resources, listed, counts in zip(every, amounts, inside, strict=True)
    ]


def _scale(total: int, limits: int, least: int, most: int) -> tuple[int, int, bool] | None:
    """The fraction by which to multiply, and whether to round up; None leaves all as it is."""
    if least <= limits and least <= total and (not most or most >= limits):
        return None
    if least > total and limits:
        return (least, total, True) if total else None
    if not limits:
        return None
    return (most if most and most < limits else least), limits, False


def _times(name: str, amount: Quantity, factor: int, divisor: int, up: bool) -> Quantity:
    number = units(name, amount) * factor
    return amount_of(name, -(-number // divisor) if up else number // divisor, amount)


def _ordered(resources: RecommendedContainerResources) -> RecommendedContainerResources:
    """The recommendation with bounds that are around the target."""
    target = resources.target
    return replace(
        resources,
        lower_bound={name: min(amount, target.get(name, amount)) for name, amount in resources.lower_bound.items()},
        upper_bound={name: max(amount, target.get(name, ZERO)) for name, amount in resources.upper_bound.items()},
    )
