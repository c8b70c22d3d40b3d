"""The status of a VPA, from the new estimates and the status that it has.

What is not known changes nothing: a resource without samples keeps what was recommended for it, and where nothing was,
nothing is. So neither lost metrics nor a restart makes a recommendation smaller. Conditions of types that are not ours
stay as they are; the time of a condition moves only with its status (V-050, V-051).
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import (
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCondition,
    VerticalPodAutoscalerStatus,
)
from podfit.api.meta.base import ResourceList
from podfit.decide.autoscaling.capping import NO_AMOUNTS, cap_to_policy
from podfit.decide.autoscaling.policies import controlled_resources, is_off, policy_of, recommended

PROVIDED, NO_PODS, UNSUPPORTED = "RecommendationProvided", "NoPodsMatched", "ConfigUnsupported"
OURS = (PROVIDED, NO_PODS, UNSUPPORTED, "ConfigDeprecated")
NO_PODS_TEXT = "No pods match this VPA object"


class Estimated(msgspec.Struct, frozen=True):
    """`unknown` are pairs of a container and a resource of which there is no sample."""

    recommendation: RecommendedPodResources
    unknown: frozenset[tuple[str, str]] = frozenset()


class VpaInputs(msgspec.Struct, frozen=True):
    """What a recommender knows of one VPA. `unsupported` says what is wrong with its target, if anything is."""

    found: Estimated
    pods: int
    unsupported: str = ""


def status(
    vpa: VerticalPodAutoscaler, seen: VpaInputs, now: str, most: ResourceList = NO_AMOUNTS
) -> VerticalPodAutoscalerStatus:
    """`most` bounds containers whose policy has no maximum."""
    kept = known(provided(vpa), seen.found, vpa.spec.resource_policy, most)
    return VerticalPodAutoscalerStatus(
        recommendation=kept if kept.container_recommendations else None,
        conditions=_conditions(vpa, seen, now, provided=bool(kept.container_recommendations)),
        observed_generation=vpa.metadata.generation,
    )


def provided(vpa: VerticalPodAutoscaler) -> RecommendedPodResources:
    """What the status recommends; nothing unless its condition says that it does."""
    said = any(condition.type == PROVIDED and condition.status == "True" for condition in vpa.status.conditions)
    return (vpa.status.recommendation if said else None) or RecommendedPodResources()


def known(
    before: RecommendedPodResources,
    latest: Estimated,
    policy: PodResourcePolicy | None,
    most: ResourceList = NO_AMOUNTS,
) -> RecommendedPodResources:
    """What is found, with what was said before where there are no samples, as the policy allows it now."""
    estimated = latest.recommendation.container_recommendations
    if estimated:
        merged = [
            _filled(recommendation, recommended(before, recommendation.container_name), latest)
            for recommendation in estimated
        ]
    else:  # no pod was ever seen: the workload has none yet, or its selector could not be read
        merged = list(_allowed(before, policy))
    kept = RecommendedPodResources(
        container_recommendations=tuple(resources for resources in merged if resources.target)
    )
    return cap_to_policy(kept, policy, most)


def _filled(
    now: RecommendedContainerResources, before: RecommendedContainerResources | None, latest: Estimated
) -> RecommendedContainerResources:
    unknown = {name for container, name in latest.unknown if container == now.container_name}
    if not unknown:
        return now
    before = before or RecommendedContainerResources()

    def filled(fresh: ResourceList, old: ResourceList) -> ResourceList:
        both = {name: old.get(name) if name in unknown else amount for name, amount in fresh.items()}
        return {name: amount for name, amount in both.items() if amount is not None}

    return replace(
        now,
        target=filled(now.target, before.target),
        lower_bound=filled(now.lower_bound, before.lower_bound),
        upper_bound=filled(now.upper_bound, before.upper_bound),
        uncapped_target=filled(now.uncapped_target, before.uncapped_target),
    )


def _allowed(
    before: RecommendedPodResources, policy: PodResourcePolicy | None
) -> Iterator[RecommendedContainerResources]:
    """Without containers and resources that the policy leaves out."""
    for recommendation in before.container_recommendations:
        own = policy_of(policy, recommendation.container_name)
        names = () if is_off(own) else controlled_resources(own)
        yield replace(
            recommendation,
            target=_only(recommendation.target, names),
            lower_bound=_only(recommendation.lower_bound, names),
            upper_bound=_only(recommendation.upper_bound, names),
            uncapped_target=_only(recommendation.uncapped_target, names),
        )


def _only(amounts: ResourceList, names: Iterable[str]) -> ResourceList:
    return {name: amounts[name] for name in names if name in amounts}


def _conditions(
    vpa: VerticalPodAutoscaler, seen: VpaInputs, now: str, *, provided: bool
) -> tuple[VerticalPodAutoscalerCondition, ...]:
    before = {condition.type: condition for condition in vpa.status.conditions}
    wanted = [condition for condition in vpa.status.conditions if condition.type not in OURS]
    wanted += (
        _since(vertical_pod_autoscaler_condition, before.get(vertical_pod_autoscaler_condition.type), now)
        for vertical_pod_autoscaler_condition in _ours(seen, provided=provided)
    )
    return tuple(sorted(wanted, key=lambda condition: condition.type))


def _ours(seen: VpaInputs, *, provided: bool) -> Iterator[VerticalPodAutoscalerCondition]:
    nobody = VerticalPodAutoscalerCondition(type=NO_PODS, status="True", reason=NO_PODS, message=NO_PODS_TEXT)
    if not seen.pods:
        yield nobody
    if seen.unsupported:
        yield VerticalPodAutoscalerCondition(type=UNSUPPORTED, status="True", message=seen.unsupported)
    if provided or seen.pods:
        yield VerticalPodAutoscalerCondition(type=PROVIDED, status=str(provided))
    else:
        yield replace(nobody, type=PROVIDED, status="False")


def _since(
    condition: VerticalPodAutoscalerCondition, before: VerticalPodAutoscalerCondition | None, now: str
) -> VerticalPodAutoscalerCondition:
    same = before is not None and before.status == condition.status
    return replace(condition, last_transition_time=before.last_transition_time if before and same else now)
