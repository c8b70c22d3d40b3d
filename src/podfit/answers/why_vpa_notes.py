"""Notes on a VPA's recommendation: why there is none, what it leaves alone, and who ran out of memory."""

from collections.abc import Iterator, Sequence

from podfit.answers.ages import Age
from podfit.answers.container_problems import ran_out_of_memory
from podfit.answers.vpas import Vpa
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.patches import recommended_resources

OOM = (
    "ran out of memory: that counts as a fifth, and at least 100Mi, more than was asked for, where nothing else is set"
)


def _why_none(vpa: Vpa, pods: Sequence[Pod] | None) -> str:
    if pods is None:
        return f"the pods of {vpa.spec.target_ref} could not be found"
    if not pods:
        return f"no pod of {vpa.spec.target_ref} runs"
    return "its recommender, which looks once a minute, has not seen these pods long enough, or does not run"


def notes(vpa: Vpa, pods: Sequence[Pod] | None, age: Age, unread: Sequence[str]) -> Iterator[str]:
    """`pods` are those of its target, None when they could not be found, and `unread` says why."""
    if age.caveat and vpa.mode.startswith("InPlace"):
        yield age.caveat
    if not vpa.status.recommendation.container_recommendations:
        yield f"there is no recommendation: {_why_none(vpa, pods)}"
    elif pods is not None and not pods:
        yield f"no pod of {vpa.spec.target_ref} runs"
    only = sorted(
        {
            policy.container_name
            for policy in vpa.spec.resource_policy.container_policies
            if policy.controlled_values == "RequestsOnly"
        }
    )
    if only:
        yield f"limits stay as they are: controlledValues is RequestsOnly for {', '.join(only)}"
    for pod in pods or ():
        names = [status.name for status in pod.status.container_statuses if ran_out_of_memory(status)]
        if names:
            yield f"{', '.join(names)} of {pod.metadata.name} {OOM}"
    yield from (f"not read: {line}" for line in unread)


def wide_limits(
    vpa: VerticalPodAutoscaler, pods: Sequence[Pod], limit_ranges: Sequence[LimitRange], most: ResourceList
) -> Iterator[str]:
    """Limits that grow in proportion with the request beyond what any node has; `most` is what the largest one has."""
    told = dict[tuple[str, str], str]()
    for pod in pods:
        own = {scaled.container.name: scaled.own for scaled in every_container(pod)}
        for container, wanted in recommended_resources(pod, vpa, limit_ranges).items():
            for name, limit in wanted.limits.items():
                before = own[container].limits.get(name)
                if name in most and limit > most[name] and limit != before:
                    told[container, name] = (
                        f"the {name} limit of {container} becomes {limit}, more than the {most[name]} of the largest "
                        f"node: it keeps its proportion to the request; controlledValues: RequestsOnly leaves it at "
                        f"{before or 'none'}"
                    )
    yield from told.values()
