"""Caps a recommendation by the VPA's policy and the recommender's own maximum (V-033, V-034).

A bound of zero is none. A minimum is applied before a maximum, so where they contradict each other the maximum holds.
`uncappedTarget` stays: it is what would be recommended without any policy.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import (
    ContainerResourcePolicy,
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU
from podfit.decide.autoscaling.conditions import ASKED_FOR, CAPPED
from podfit.decide.autoscaling.policies import EVERY_CONTAINER, policy_of, recommended

INTEGER_CPU = "vpa-post-processor.kubernetes.io/{}_integerCPU"
NO_AMOUNTS: ResourceList = {}
MIN_ALLOWED, MAX_ALLOWED = "minAllowed", "maxAllowed"


def at_least(amounts: ResourceList, least: ResourceList) -> ResourceList:
    """The resources in `amounts`, each raised to its bound."""
    return {name: max(amount, least.get(name, amount)) for name, amount in amounts.items()}


def at_most(amounts: ResourceList, most: ResourceList) -> ResourceList:
    """The resources in `amounts`, each lowered to its bound; a bound of zero is none."""
    return {name: min(amount, most[name]) if most.get(name) else amount for name, amount in amounts.items()}


class Bounded(NamedTuple):
    """An amount within its bounds, and the bound that decided it: MIN_ALLOWED, MAX_ALLOWED or empty."""

    amount: Quantity
    rule: str = ""


def capped(name: str, amount: Quantity, least: ResourceList, most: ResourceList) -> Bounded:
    """One resource; the minimum is applied before the maximum, and a maximum of zero is none, as upstream has it."""
    raised = max(amount, least.get(name, amount))
    lowered = min(raised, most.get(name) or raised)
    return Bounded(lowered, MAX_ALLOWED if lowered < raised else MIN_ALLOWED if raised > amount else "")


def cap_to_policy(
    recommendation: RecommendedPodResources, policy: PodResourcePolicy | None, most: ResourceList = NO_AMOUNTS
) -> RecommendedPodResources:
    """Each container within its policy; `most` bounds what the policy does not bound from above."""
    if policy is None and not most:
        return recommendation
    return RecommendedPodResources(
        container_recommendations=tuple(
            _capped(container, policy_of(policy, container.container_name), most)
            for container in recommendation.container_recommendations
        )
    )


def _capped(
    resources: RecommendedContainerResources, policy: ContainerResourcePolicy | None, most: ResourceList
) -> RecommendedContainerResources:
    least = policy.min_allowed if policy else NO_AMOUNTS
    most = {**most, **policy.max_allowed} if policy else most
    if not least and not most:
        return resources

    def within(amounts: ResourceList) -> dict[str, Quantity]:
        return {name: capped(name, amount, least, most).amount for name, amount in amounts.items()}

    return replace(
        resources,
        target=within(resources.target),
        lower_bound=within(resources.lower_bound),
        upper_bound=within(resources.upper_bound),
    )


def notes(before: ResourceList, policy: ContainerResourcePolicy | None) -> Iterator[str]:
    """What a policy does to these amounts, as it is written on a pod."""
    if policy is None:
        return
    for name, amount in before.items():
        rule = capped(name, amount, policy.min_allowed, policy.max_allowed).rule
        if rule:
            yield f"{name} capped to {rule}"


def capped_by(vpa: VerticalPodAutoscaler, container: str, resource: str) -> str:
    """What made a target differ from what was seen, and by how much; empty when nothing did."""
    found, policy = recommended(vpa.status.recommendation, container), policy_of(vpa.spec.resource_policy, container)
    target, seen = (found.target.get(resource), found.uncapped_target.get(resource)) if found else (None, None)
    if target is None or seen is None or seen == target:
        return ""
    least, most = (policy.min_allowed, policy.max_allowed) if policy else (NO_AMOUNTS, NO_AMOUNTS)
    decided = capped(resource, seen, least, most)
    name = policy.container_name if policy else ""
    whose = f'containerPolicies "{name}"' if name == EVERY_CONTAINER else "containerPolicies"
    if decided.rule and decided.amount == target:
        return f"{decided.rule} {target} of {whose}"
    true = {said.type: said.message or "" for said in vpa.status.conditions if said.status == "True"}
    if f"{resource} of a pod is" in true.get(ASKED_FOR, ""):
        return "what its HorizontalPodAutoscaler asks for"
    if target < seen and CAPPED in true:
        return "what the largest node has"
    way = "lowered" if target < seen else "raised"
    return f"{way} by something that this object does not name, such as a flag of the recommender"


def whole_core(container: str, annotations: Mapping[str, str]) -> bool:
    """Whether an annotation of the VPA asks for whole cores."""
    return annotations.get(INTEGER_CPU.format(container)) == "true"


def whole_cores(recommendation: RecommendedPodResources, annotations: Mapping[str, str]) -> RecommendedPodResources:
    """CPU rounded up to whole cores for the containers that an annotation of the VPA names, with value `true`."""
    return RecommendedPodResources(
        container_recommendations=tuple(
            _whole(container) if whole_core(container.container_name, annotations) else container
            for container in recommendation.container_recommendations
        )
    )


def _whole(resources: RecommendedContainerResources) -> RecommendedContainerResources:
    def rounded(amounts: ResourceList) -> dict[str, Quantity]:
        return {name: Quantity.of(amount.value()) if name == CPU else amount for name, amount in amounts.items()}

    return replace(
        resources,
        target=rounded(resources.target),
        lower_bound=rounded(resources.lower_bound),
        upper_bound=rounded(resources.upper_bound),
        uncapped_target=rounded(resources.uncapped_target),
    )
