"""Notes on a VPA: why there is no recommendation, what its annotations and policies do, limits beyond any node."""

from collections.abc import Iterator, Sequence

from podfit.answers.facts.ages import Age
from podfit.answers.facts.pod_state import ran_out_of_memory
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.decide.autoscaling.container_view import sized
from podfit.decide.autoscaling.patches import recommended_resources
from podfit.decide.autoscaling.policies import (
    CONTROLLED_VALUES,
    EVERY_CONTAINER,
    REQUESTS_ONLY,
    controlled_values,
    stored_mode,
)
from podfit.decide.autoscaling.scope import AGGREGATION, POD_POLICY, WORKLOAD, Rules


def target_named(vpa: VerticalPodAutoscaler) -> str:
    target = vpa.spec.target_ref
    return f"{target.kind}/{target.name}" if target is not None else "nothing"


OOM = (
    "ran out of memory: that counts as a fifth, and at least 100Mi, more than was asked for, where nothing else is set"
)


def _why_none(vpa: VerticalPodAutoscaler, pods: Sequence[Pod] | None) -> str:
    if pods is None:
        return f"the pods of {target_named(vpa)} could not be found"
    if not pods:
        return f"no pod of {target_named(vpa)} runs"
    return "its recommender, which looks once a minute, has not seen these pods long enough, or does not run"


def notes(vpa: VerticalPodAutoscaler, pods: Sequence[Pod] | None, age: Age) -> Iterator[str]:
    """`pods` are those of its target, None when they could not be found."""
    if age.caveat and stored_mode(vpa).startswith("InPlace"):
        yield age.caveat
    if vpa.status.recommendation is None or not vpa.status.recommendation.container_recommendations:
        yield f"there is no recommendation: {_why_none(vpa, pods)}"
    elif pods is not None and not pods:
        yield f"no pod of {target_named(vpa)} runs"
    policies = vpa.spec.resource_policy.container_policies if vpa.spec.resource_policy else ()
    only = sorted({policy.container_name for policy in policies if policy.controlled_values == REQUESTS_ONLY})
    yield from _scope_notes(vpa)
    if only:
        yield f"limits stay as they are: controlledValues is RequestsOnly for {', '.join(only)}"
    for (container, resource), value in (controlled_values(vpa.metadata.annotations) or {}).items():
        does = "stay as they are" if value == REQUESTS_ONLY else "follow the requests"
        whose = "every container" if container == EVERY_CONTAINER else container
        yield f"{resource} limits of {whose} {does} ({CONTROLLED_VALUES})"
    for pod in pods or ():
        names = [status.name for status in pod.status.container_statuses if ran_out_of_memory(status)]
        if names:
            yield f"{', '.join(names)} of {pod.metadata.name} {OOM}"


def _scope_notes(vpa: VerticalPodAutoscaler) -> Iterator[str]:
    rules = Rules.of(vpa.metadata.annotations)
    if rules.whole is not None:
        yield f"pods are sized as a whole, by their usage together; containers keep what they request ({POD_POLICY})"
    if rules.scope != WORKLOAD:
        yield f"usage counts for slices of the pods, by {rules.scope} ({AGGREGATION})"


def wide_limits(
    vpa: VerticalPodAutoscaler, pods: Sequence[Pod], limit_ranges: Sequence[LimitRange], most: ResourceList
) -> Iterator[str]:
    """Limits that grow in proportion with the request beyond what any node has; `most` is what the largest one has."""
    told = dict[tuple[str, str], str]()
    for pod in pods:
        found = recommended_resources(pod, vpa, limit_ranges)
        own = {scaled.container.name: scaled.own for scaled in sized(pod, found)}
        for container, wanted in found.items():
            for name, limit in wanted.limits.items():
                before = own[container].limits.get(name)
                if name in most and limit > most[name] and limit != before:
                    told[container, name] = (
                        f"the {name} limit of {container} becomes {limit}, more than the {most[name]} of the largest "
                        f"node: it keeps its proportion to the request; controlledValues: RequestsOnly leaves it at "
                        f"{before or 'none'}"
                    )
    yield from told.values()
