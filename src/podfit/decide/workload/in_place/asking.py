"""Whether a workload is to be rolled out in place, which templates are fit for it, and the size that a pod is to have.

podfit.dev/rollout: in-place          of the workload, or of its namespace, which the workload overrules
podfit.dev/rollout-deadline: 5m       how long a resize may wait before the pod is replaced after all
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.core.durations import parse_duration

ROLLOUT, DEADLINE = "podfit.dev/rollout", "podfit.dev/rollout-deadline"
IN_PLACE = "in-place"
SECONDS = 300.0
_NOTHING = ResourceRequirements()


class Asked(msgspec.Struct, frozen=True):
    """`deadline` in seconds; `problem` says why what was written of it is not followed."""

    deadline: float = SECONDS
    problem: str = ""


def asked(owner: Mapping[str, str], namespace: Mapping[str, str]) -> Asked | None:
    """What the annotations of the workload and of its namespace ask for; None when it is to be rolled out as ever."""
    if owner.get(ROLLOUT, namespace.get(ROLLOUT)) != IN_PLACE:
        return None
    text = owner.get(DEADLINE, namespace.get(DEADLINE))
    if text is None:
        return Asked()
    try:
        return Asked(parse_duration(text))
    except ValueError as error:
        return Asked(problem=f"annotation {DEADLINE}: {error}; 5m is taken")


def differs_in_resources(new: PodTemplateSpec, old: PodTemplateSpec, *, ignored: str = "") -> bool:
    """Whether two templates are the same but for the resources of what a resize can change; `ignored` is a label.

    Init containers that run once are not resized, so one of another size is another template.
    """
    return _blank(new, ignored) == _blank(old, ignored)


def _blank(template: PodTemplateSpec, ignored: str) -> PodTemplateSpec:
    labels = {key: value for key, value in template.metadata.labels.items() if key != ignored}
    spec = replace(
        template.spec,
        containers=tuple(replace(container, resources=_NOTHING) for container in template.spec.containers),
        init_containers=tuple(
            replace(container, resources=_NOTHING) if is_sidecar(container) else container
            for container in template.spec.init_containers
        ),
        resources=None,
    )
    return replace(template, metadata=replace(template.metadata, labels=labels), spec=spec)


def sized_as(pod: Pod, admitted: Pod) -> Pod:
    """The pod with the sizes of one that was admitted anew; containers that only one of them has stay as they are."""
    spec, new = pod.spec, admitted.spec
    containers = _sized(spec.containers, new.containers)
    init = _sized(spec.init_containers, tuple(filter(is_sidecar, new.init_containers)))
    level = spec.resources if new.resources is None else new.resources
    if (containers, init, level) == (spec.containers, spec.init_containers, spec.resources):
        return pod
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init, resources=level))


def _sized(containers: tuple[Container, ...], wanted: tuple[Container, ...]) -> tuple[Container, ...]:
    by_name = {container.name: container.resources for container in wanted}
    return tuple(
        replace(container, resources=by_name.get(container.name, container.resources)) for container in containers
    )
