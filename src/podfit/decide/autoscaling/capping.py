"""Caps a recommendation by the VPA's policy and the recommender's own maximum (V-033, V-034).

A bound of zero is none. A minimum is applied before a maximum, so where they contradict each other the maximum holds.
`uncappedTarget` stays: it is what would be recommended without any policy.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import (
    ContainerResourcePolicy,
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
)
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU
from podfit.decide.autoscaling.policies import policy_of

INTEGER_CPU = "vpa-post-processor.kubernetes.io/{}_integerCPU"
NO_AMOUNTS: ResourceList = {}


def at_least(amounts: ResourceList, least: ResourceList) -> ResourceList:
    """Of the resources in `amounts`, each raised to its bound."""
    return {name: max(amount, least.get(name, amount)) for name, amount in amounts.items()}


def at_most(amounts: ResourceList, most: ResourceList) -> ResourceList:
    """Of the resources in `amounts`, each lowered to its bound."""
    return {name: min(amount, most.get(name) or amount) for name, amount in amounts.items()}


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
        return dict(at_most(at_least(amounts, least), most))

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
        least, most = policy.min_allowed.get(name), policy.max_allowed.get(name)
        raised = max(amount, least) if least else amount
        if most and raised > most:
            yield f"{name} capped to maxAllowed"
        elif raised != amount:
            yield f"{name} capped to minAllowed"


def whole_cores(recommendation: RecommendedPodResources, annotations: Mapping[str, str]) -> RecommendedPodResources:
    """CPU rounded up to whole cores for the containers that an annotation of the VPA names, with value `true`."""
    return RecommendedPodResources(
        container_recommendations=tuple(
            _whole(container) if annotations.get(INTEGER_CPU.format(container.container_name)) == "true" else container
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
