"""Notes on a VPA's recommendation: why there is none, what it leaves alone, and who ran out of memory."""

from collections.abc import Iterator, Sequence

from podfit.answers.ages import Age
from podfit.answers.container_problems import ran_out_of_memory
from podfit.answers.vpas import Vpa
from podfit.api.core.v1.pods.types import Pod

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
