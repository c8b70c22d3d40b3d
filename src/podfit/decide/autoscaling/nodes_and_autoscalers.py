"""Bounds on recommendations from horizontal autoscalers of the same resource, and from the sizes of nodes.

An HPA that keeps usage at a share of the request, and a VPA that moves the request, answer the same load twice. So what
an HPA scales on is not recommended, and a condition says so.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import (
    CrossVersionObjectReference,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscalerStatus,
)
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.conditions import CAPPED, with_condition
from podfit.decide.autoscaling.horizontal.keep_point import request_bounds
from podfit.decide.autoscaling.horizontal.vertical import shares
from podfit.decide.autoscaling.status import PROVIDED

NEAR = 4
"""What is less than this part of a size away from it is near."""
_MILLI = 10**6  # nano units
HELD = "podfit.dev/HorizontalAutoscaler"
POINT = "podfit.dev/ScalePoint"


class Around(msgspec.Struct, frozen=True):
    """For one pass: the most that a container could get anywhere, and by target and resource the HPAs that scale it."""

    most: ResourceList = msgspec.field(default_factory=dict)
    held: Mapping[tuple[str, str, str], Mapping[str, tuple[str, ...]]] = msgspec.field(default_factory=dict)
    points: Mapping[tuple[str, str, str], Mapping[str, tuple[int, int]]] = msgspec.field(default_factory=dict)
    """Bounds of requests (thousandths of a pod) within which HPAs keep the point at which they scale."""

    def keeps(self, namespace: str, target: CrossVersionObjectReference | None) -> Mapping[str, tuple[int, int]]:
        return self.points.get((namespace, target.kind, target.name), {}) if target is not None else {}

    def holds(self, namespace: str, target: CrossVersionObjectReference | None) -> Mapping[str, tuple[str, ...]]:
        return self.held.get((namespace, target.kind, target.name), {}) if target is not None else {}


def held_resources(
    autoscalers: Iterable[HorizontalPodAutoscaler],
) -> dict[tuple[str, str, str], dict[str, tuple[str, ...]]]:
    """By namespace, kind and name of a target, and by resource, the HPAs that scale it on its share of the request."""
    found: dict[tuple[str, str, str], dict[str, tuple[str, ...]]] = {}
    for autoscaler in autoscalers:
        scaled = found.setdefault(_target_of(autoscaler), {})
        for resource in dict.fromkeys(filter(None, map(shares, autoscaler.spec.metrics))):
            scaled[resource] = (*scaled.get(resource, ()), autoscaler.metadata.name)
    return found


def kept_points(
    autoscalers: Iterable[HorizontalPodAutoscaler],
) -> dict[tuple[str, str, str], dict[str, tuple[int, int]]]:
    """By namespace, kind and name of a target, and by resource, the bounds within which all HPAs keep their point."""
    by_target: dict[tuple[str, str, str], list[HorizontalPodAutoscaler]] = {}
    for autoscaler in autoscalers:
        by_target.setdefault(_target_of(autoscaler), []).append(autoscaler)
    return {target: bounds for target, its in by_target.items() if (bounds := request_bounds(its))}


def _target_of(autoscaler: HorizontalPodAutoscaler) -> tuple[str, str, str]:
    ref = autoscaler.spec.scale_target_ref
    return autoscaler.metadata.namespace, ref.kind, ref.name


def largest(nodes: Iterable[Node]) -> ResourceList:
    """The most that a container could get anywhere. Cordoned nodes count: sizes do not fall for a drain."""
    found: ResourceList = {}
    for node in nodes:
        for name in (CPU, MEMORY):
            amount = node.status.allocatable.get(name)
            if amount is not None and (name not in found or amount > found[name]):
                found[name] = amount
    return found


def without_held(
    status: VerticalPodAutoscalerStatus, held: Mapping[str, tuple[str, ...]], now: str
) -> VerticalPodAutoscalerStatus:
    """Nothing of what an HPA scales on, and a condition that says so while it does."""
    text = "; ".join(
        f"{_named(names)} on {resource}, which is therefore not recommended" for resource, names in sorted(held.items())
    )
    if held:
        kept, conditions = _kept(status.recommendation, held), status.conditions
        if kept is None:
            conditions = tuple(replace(said, status="False") if said.type == PROVIDED else said for said in conditions)
        status = replace(status, recommendation=kept, conditions=conditions)
    return with_condition(status, HELD, "SameResource", text, now)


def within_points(
    status: VerticalPodAutoscalerStatus,
    before: RecommendedPodResources | None,
    points: Mapping[str, tuple[int, int]],
    now: str,
) -> VerticalPodAutoscalerStatus:
    """Sizes with which HPAs keep the point at which they scale: containers of a pod in proportion, and a condition that
    says where they stop. What was recommended `before` stays while it is near: the HPA's target follows anyway, and
    each step of one would be a step of the other."""
    found, texts = status.recommendation, list[str]()
    every = found.container_recommendations if found is not None else ()
    earlier = {one.container_name: one for one in before.container_recommendations} if before is not None else {}
    near = tuple(_steady(one, earlier.get(one.container_name), points) for one in every)
    if near != every:
        every, status = near, replace(status, recommendation=RecommendedPodResources(container_recommendations=near))
    for resource, (least, most) in sorted(points.items()):
        total = sum(one.target[resource].milli() for one in every if resource in one.target)
        ought = max(least, min(most, total))
        if not total or ought == total:
            continue
        texts.append(
            f"{resource} of a pod stays at {Quantity(ought * _MILLI)}, where its HorizontalPodAutoscaler keeps the "
            f"point at which it scales; {Quantity(total * _MILLI)} would be recommended"
        )
        every = tuple(_scaled(one, resource, least, most, total) for one in every)
    if texts:
        status = replace(status, recommendation=RecommendedPodResources(container_recommendations=every))
    return with_condition(status, POINT, "KeepsPoint", "; ".join(texts), now)


def _steady(
    one: RecommendedContainerResources, before: RecommendedContainerResources | None, resources: Iterable[str]
) -> RecommendedContainerResources:
    """With the target of before where the new one is less than a quarter away; the bounds reach as far as it."""
    target, lower, upper = dict(one.target), dict(one.lower_bound), dict(one.upper_bound)
    for name in resources:
        old, new = before.target.get(name) if before is not None else None, one.target.get(name)
        if old is None or new is None or old == new or abs(new.nano - old.nano) * NEAR > old.nano:
            continue
        target[name] = old
        if name in lower:
            lower[name] = min(lower[name], old)
        if name in upper:
            upper[name] = max(upper[name], old)
    return replace(one, target=target, lower_bound=lower, upper_bound=upper)


def _scaled(
    one: RecommendedContainerResources, resource: str, least: int, most: int, total: int
) -> RecommendedContainerResources:
    """Its share of the bounds of the pod."""
    share = one.target[resource].milli() if resource in one.target else 0

    def bounded(amounts: ResourceList) -> ResourceList:
        if resource not in amounts or not share:
            return amounts
        low, high = -(-least * share // total), most * share // total
        milli = max(low, min(high, amounts[resource].milli()))
        return {**amounts, resource: Quantity(milli * _MILLI, amounts[resource].format)}

    return replace(
        one, target=bounded(one.target), lower_bound=bounded(one.lower_bound), upper_bound=bounded(one.upper_bound)
    )


def _named(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"HorizontalPodAutoscaler {names[0]} scales"
    return f"HorizontalPodAutoscalers {', '.join(sorted(names))} scale"


def capped_to_nodes(status: VerticalPodAutoscalerStatus, most: ResourceList, now: str) -> VerticalPodAutoscalerStatus:
    """With a condition that says what a larger node would be recommended for; `most` is what the largest one has."""
    found = status.recommendation.container_recommendations if status.recommendation else ()
    short = [
        f"{name} of {recommended.container_name}: {wanted} would be recommended, the largest node has {most[name]}"
        for recommended in found
        for name, wanted in recommended.uncapped_target.items()
        if name in most and wanted > most[name] and recommended.target.get(name) == most[name]
    ]
    return with_condition(status, CAPPED, "NoNodeIsLarger", "; ".join(short), now)


def _kept(recommendation: RecommendedPodResources | None, held: Mapping[str, object]) -> RecommendedPodResources | None:
    def rest(amounts: ResourceList) -> ResourceList:
        return {name: amount for name, amount in amounts.items() if name not in held}

    def left(resources: RecommendedContainerResources) -> RecommendedContainerResources:
        return replace(
            resources,
            target=rest(resources.target),
            lower_bound=rest(resources.lower_bound),
            upper_bound=rest(resources.upper_bound),
            uncapped_target=rest(resources.uncapped_target),
        )

    every = tuple(
        resources
        for resources in map(left, recommendation.container_recommendations if recommendation else ())
        if resources.target
    )
    return RecommendedPodResources(container_recommendations=every) if every else None
