"""The answer to who asks what one pod would get: the status that its VPA would have now, told by container."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import (
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
)
from podfit.api.core.v1.pods.types import Pod
from podfit.api.recommender.v1alpha1 import ContainerRecommendation, PodRecommendationStatus
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.container_view import WHOLE, every_container
from podfit.decide.autoscaling.policies import is_off, policy_of, recommended
from podfit.decide.autoscaling.status import OURS, Estimated

FROM_USAGE, FROM_STATUS = "usage", "status"
NO_VPA = "no VerticalPodAutoscaler of this recommender controls the pod"


def answered(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    status: VerticalPodAutoscalerStatus,
    estimated: Estimated,
    confidence: Mapping[str, float],
) -> PodRecommendationStatus:
    """`status` is what the recommender would write now; `confidence` by container. A container of which nothing is
    known is named with the reason.
    """
    conditions = tuple(
        f"{condition.type}: {condition.message}"
        for condition in status.conditions
        if condition.status == "True" and condition.message and condition.type not in OURS
    )
    if WHOLE in _named(vpa):
        level = _container(WHOLE, vpa, status, estimated, confidence, conditions)
        return PodRecommendationStatus(vpa=vpa.metadata.name, pod=level)
    containers = (
        _container(scaled.container.name, vpa, status, estimated, confidence, conditions)
        for scaled in every_container(pod)
    )
    return PodRecommendationStatus(vpa=vpa.metadata.name, containers=tuple(containers))


def _named(vpa: VerticalPodAutoscaler) -> frozenset[str]:
    """What its policies are for."""
    policy = vpa.spec.resource_policy
    return frozenset(one.container_name for one in (policy.container_policies if policy else ()))


def _container(
    name: str,
    vpa: VerticalPodAutoscaler,
    status: VerticalPodAutoscalerStatus,
    estimated: Estimated,
    confidence: Mapping[str, float],
    conditions: tuple[str, ...],
) -> ContainerRecommendation:
    sizes = recommended(status.recommendation, name)
    unknown = [resource for container, resource in sorted(estimated.unknown) if container == name]
    if sizes is None:
        off = is_off(policy_of(vpa.spec.resource_policy, name))
        why = "the VPA's policy switches it off" if off else "no samples of it are known"
        return ContainerRecommendation(name=name, source=FROM_USAGE, reasons=(why,))
    known = recommended(estimated.recommendation, name) is not None and not unknown
    sure = confidence.get(name)
    return ContainerRecommendation(
        name=name,
        target=sizes.target,
        lower_bound=sizes.lower_bound,
        upper_bound=sizes.upper_bound,
        source=FROM_USAGE if known else FROM_STATUS,
        confidence=Quantity.of_milli(round(1000 * sure)) if sure is not None else None,
        reasons=(*_reasons(sizes, unknown), *conditions),
    )


def _reasons(sizes: RecommendedContainerResources, unknown: list[str]) -> Iterator[str]:
    for resource in unknown:
        yield f"no samples of {resource}: what was recommended before stays"
    for resource, amount in sizes.target.items():
        uncapped = sizes.uncapped_target.get(resource)
        if uncapped is not None and uncapped != amount:
            yield f"{resource} would be {uncapped} without bounds"


def with_answer(vpa: VerticalPodAutoscaler, answer: PodRecommendationStatus) -> VerticalPodAutoscaler:
    """The VPA with what was answered in the place of what its status recommends for these containers."""
    fresh = {
        container.name: RecommendedContainerResources(
            container_name=container.name,
            target=container.target,
            lower_bound=container.lower_bound,
            upper_bound=container.upper_bound,
        )
        for container in (*answer.containers, *((answer.pod,) if answer.pod is not None else ()))
        if container.target
    }
    if answer.vpa != vpa.metadata.name or not fresh:
        return vpa
    stored = vpa.status.recommendation.container_recommendations if vpa.status.recommendation else ()
    kept = tuple(resources for resources in stored if resources.container_name not in fresh)
    recommendation = RecommendedPodResources(container_recommendations=(*kept, *fresh.values()))
    return replace(vpa, status=replace(vpa.status, recommendation=recommendation))
