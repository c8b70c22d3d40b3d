"""Bounds on recommendations from horizontal autoscalers of the same resource, and from the sizes of nodes.

An HPA that keeps usage at a share of the request, and a VPA that moves the request, answer the same load twice. So what
an HPA scales on is not recommended, and a condition says so; unless the HPA follows the request (keep-point), or asks
for it (vertical-first).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import (
    CrossVersionObjectReference,
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
)
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.core.times import parse_time
from podfit.decide.autoscaling.conditions import ASKED_FOR, CAPPED, with_condition
from podfit.decide.autoscaling.horizontal.asked_size import asked, split
from podfit.decide.autoscaling.horizontal.keep_point import request_bounds
from podfit.decide.autoscaling.horizontal.vertical import shares
from podfit.decide.autoscaling.status import PROVIDED
from podfit.decide.autoscaling.targets import NamedTarget, scaled_by

NEAR = 4
"""What is less than this part of a size away from it is near."""
_MILLI = 10**6  # nano units
HELD = "podfit.dev/HorizontalAutoscaler"
POINT = "podfit.dev/ScalePoint"
MOVES = "podfit.dev/ScalePointMoves"
"""That another size is seen, which has yet to last."""
LASTS = 3600.0
"""Seconds. Pods of a node that is lost are missing for five minutes, in which the others have their load; a percentile
of 90 has that in it for up to nine times as long after it.
"""


class Around(msgspec.Struct, frozen=True):
    """For one pass: the most that a container could get anywhere, and by target and resource the HPAs that scale it."""

    most: ResourceList = msgspec.field(default_factory=dict)
    held: Mapping[NamedTarget, Mapping[str, tuple[str, ...]]] = msgspec.field(default_factory=dict)
    points: Mapping[NamedTarget, Mapping[str, tuple[int, int]]] = msgspec.field(default_factory=dict)
    """Bounds of requests (thousandths of a pod) within which HPAs keep the point at which they scale."""
    asked: Mapping[NamedTarget, Mapping[str, tuple[int, str]]] = msgspec.field(default_factory=dict)
    """Sizes (thousandths of a pod) that HPAs ask for before they add replicas, and which of them does."""

    def asks(self, namespace: str, target: CrossVersionObjectReference | None) -> Mapping[str, tuple[int, str]]:
        return self.asked.get(NamedTarget(namespace, target.kind, target.name), {}) if target is not None else {}

    def keeps(self, namespace: str, target: CrossVersionObjectReference | None) -> Mapping[str, tuple[int, int]]:
        return self.points.get(NamedTarget(namespace, target.kind, target.name), {}) if target is not None else {}

    def sized_by_autoscalers(self, namespace: str, target: CrossVersionObjectReference | None) -> frozenset[str]:
        """The resources in which HPAs of a target have a say: all of its pods are alike in them."""
        place = namespace, target
        return frozenset((*self.keeps(*place), *self.asks(*place), *self.holds(*place)))

    def holds(self, namespace: str, target: CrossVersionObjectReference | None) -> Mapping[str, tuple[str, ...]]:
        return self.held.get(NamedTarget(namespace, target.kind, target.name), {}) if target is not None else {}


def around(nodes: Iterable[Node], autoscalers: Iterable[HorizontalPodAutoscaler]) -> Around:
    autoscalers = tuple(autoscalers)
    return Around(largest(nodes), held_resources(autoscalers), kept_points(autoscalers), asked_sizes(autoscalers))


def beside_autoscalers(
    status: VerticalPodAutoscalerStatus, vpa: VerticalPodAutoscaler, seen: Around, most: ResourceList, now: str
) -> VerticalPodAutoscalerStatus:
    """What HPAs of its target make of a new status. `vpa` has the one before, `most` is what a container may get."""
    place = vpa.metadata.namespace, vpa.spec.target_ref
    points, sizes = seen.keeps(*place), seen.asks(*place)
    held = {name: by for name, by in seen.holds(*place).items() if name not in points and name not in sizes}
    status = within_points(status, vpa.status.recommendation, points, now)
    status = with_asked(status, sizes, vpa.spec.resource_policy, most, now)
    return without_held(status, held, now)


def held_resources(autoscalers: Iterable[HorizontalPodAutoscaler]) -> dict[NamedTarget, dict[str, tuple[str, ...]]]:
    """The HPAs, by namespace, kind and name of a target and by resource, that scale it on its share of the request."""
    found: dict[NamedTarget, dict[str, tuple[str, ...]]] = {}
    for autoscaler in autoscalers:
        scaled = found.setdefault(scaled_by(autoscaler), {})
        for resource in dict.fromkeys(filter(None, map(shares, autoscaler.spec.metrics))):
            scaled[resource] = (*scaled.get(resource, ()), autoscaler.metadata.name)
    return found


def kept_points(autoscalers: Iterable[HorizontalPodAutoscaler]) -> dict[NamedTarget, dict[str, tuple[int, int]]]:
    """The bounds, by namespace, kind and name of a target and by resource, within which all HPAs keep their point."""
    return {target: bounds for target, its in _by_target(autoscalers).items() if (bounds := request_bounds(its))}


def asked_sizes(autoscalers: Iterable[HorizontalPodAutoscaler]) -> dict[NamedTarget, dict[str, tuple[int, str]]]:
    """The size, by namespace, kind and name of a target and by resource, that an HPA asks for, and which one does."""
    return {target: sizes for target, its in _by_target(autoscalers).items() if (sizes := asked(its))}


def _by_target(autoscalers: Iterable[HorizontalPodAutoscaler]) -> dict[NamedTarget, list[HorizontalPodAutoscaler]]:
    found: dict[NamedTarget, list[HorizontalPodAutoscaler]] = {}
    for autoscaler in autoscalers:
        found.setdefault(scaled_by(autoscaler), []).append(autoscaler)
    return found


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
        status = _recommending(status, _kept(status.recommendation, held))
    return with_condition(status, HELD, "SameResource", text, now)


def within_points(
    status: VerticalPodAutoscalerStatus,
    before: RecommendedPodResources | None,
    points: Mapping[str, tuple[int, int]],
    now: str,
) -> VerticalPodAutoscalerStatus:
    """Sizes with which HPAs keep the point at which they scale: containers of a pod in proportion, and a condition that
    says where they stop. What was recommended `before` stays while the new one is near, since the HPA's target follows
    anyway and each step of one would be a step of the other, and until one that is away has lasted: when a node is lost
    few pods have all of the load, which is no size to follow."""
    found, texts = status.recommendation, list[str]()
    every = found.container_recommendations if found is not None else ()
    earlier = {one.container_name: one for one in before.container_recommendations} if before is not None else {}
    away = sorted({name for one in every for name in _away(one, earlier.get(one.container_name), points)})
    status = with_condition(status, MOVES, "HasToLast", _moving(away), now)
    if away and _since(status, MOVES, now) >= LASTS:
        status = with_condition(status, MOVES, "", "", now)
    else:
        every = tuple(_steady(one, earlier.get(one.container_name), points) for one in every)
        status = _recommending(status, every)
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


def _away(
    one: RecommendedContainerResources, before: RecommendedContainerResources | None, resources: Iterable[str]
) -> Iterator[str]:
    """The resources whose target is a quarter or more away from the one before, or the first."""
    for name in resources:
        old, new = before.target.get(name) if before is not None else None, one.target.get(name)
        if new is not None and (old is None or abs(new.nano - old.nano) * NEAR > old.nano):
            yield name


def _moving(resources: Sequence[str]) -> str:
    if not resources:
        return ""
    names, minutes = " and ".join(resources), LASTS / 60
    return (
        f"another size is seen for {names}; it is recommended when that lasts {minutes:g} minutes, since few pods have "
        "all of the load while a node is lost"
    )


def _since(status: VerticalPodAutoscalerStatus, name: str, now: str) -> float:
    """Seconds for which a condition has been true."""
    since = next((said.last_transition_time for said in status.conditions if said.type == name), None)
    return (parse_time(now) - parse_time(since)).total_seconds() if since else 0.0


def _steady(
    one: RecommendedContainerResources, before: RecommendedContainerResources | None, resources: Iterable[str]
) -> RecommendedContainerResources:
    """One with the targets of before, or none where there were none; the bounds reach as far as those."""
    target, lower, upper = dict(one.target), dict(one.lower_bound), dict(one.upper_bound)
    for name in resources:
        old = before.target.get(name) if before is not None else None
        if old is None:
            for amounts in (target, lower, upper):
                amounts.pop(name, None)
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


def with_asked(
    status: VerticalPodAutoscalerStatus,
    sizes: Mapping[str, tuple[int, str]],
    policy: PodResourcePolicy | None,
    most: ResourceList,
    now: str,
) -> VerticalPodAutoscalerStatus:
    """The sizes that HPAs ask for, by containers in proportion to what is seen of them, and a condition that says so.
    Bounds are the size itself, so that the updater acts on it at once."""
    every, texts = status.recommendation.container_recommendations if status.recommendation else (), list[str]()
    for resource, (size, name) in sorted(sizes.items()):
        seen = {
            one.container_name: one.uncapped_target.get(resource, one.target[resource]).milli()
            for one in every
            if resource in one.target
        }
        parts = split(size, seen, resource, policy, most)
        every = tuple(_sized(one, resource, parts.get(one.container_name)) for one in every)
        if parts:
            texts.append(
                f"{resource} of a pod is {Quantity(sum(parts.values()) * _MILLI)}, which HorizontalPodAutoscaler "
                f"{name} asks for: pods grow before replicas are added, and shrink after replicas are gone"
            )
    if texts:
        status = replace(status, recommendation=RecommendedPodResources(container_recommendations=every))
    return with_condition(status, ASKED_FOR, "Follows", "; ".join(texts), now)


def _sized(one: RecommendedContainerResources, resource: str, milli: int | None) -> RecommendedContainerResources:
    if milli is None:
        return one
    amount = {resource: Quantity(milli * _MILLI, one.target[resource].format)}
    return replace(
        one,
        target={**one.target, **amount},
        lower_bound={**one.lower_bound, **amount},
        upper_bound={**one.upper_bound, **amount},
    )


def _named(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"HorizontalPodAutoscaler {names[0]} scales"
    return f"HorizontalPodAutoscalers {', '.join(sorted(names))} scale"


def capped_to_nodes(status: VerticalPodAutoscalerStatus, most: ResourceList, now: str) -> VerticalPodAutoscalerStatus:
    """The status with a condition that says what a larger node would be recommended for; `most` is what the largest one
    has."""
    found = status.recommendation.container_recommendations if status.recommendation else ()
    short = [
        f"{name} of {recommended.container_name}: {wanted} would be recommended, the largest node has {most[name]}"
        for recommended in found
        for name, wanted in recommended.uncapped_target.items()
        if name in most and wanted > most[name] and recommended.target.get(name) == most[name]
    ]
    return with_condition(status, CAPPED, "NoNodeIsLarger", "; ".join(short), now)


def _recommending(
    status: VerticalPodAutoscalerStatus, every: Iterable[RecommendedContainerResources]
) -> VerticalPodAutoscalerStatus:
    """Containers of which nothing is recommended are left out; a condition says so where none is left."""
    kept, conditions = tuple(one for one in every if one.target), status.conditions
    if not kept:
        conditions = tuple(replace(said, status="False") if said.type == PROVIDED else said for said in conditions)
    found = RecommendedPodResources(container_recommendations=kept) if kept else None
    return replace(status, recommendation=found, conditions=conditions)


def _kept(
    recommendation: RecommendedPodResources | None, held: Mapping[str, object]
) -> Iterator[RecommendedContainerResources]:
    def rest(amounts: ResourceList) -> ResourceList:
        return {name: amount for name, amount in amounts.items() if name not in held}

    for one in recommendation.container_recommendations if recommendation else ():
        yield replace(
            one,
            target=rest(one.target),
            lower_bound=rest(one.lower_bound),
            upper_bound=rest(one.upper_bound),
            uncapped_target=rest(one.uncapped_target),
        )
