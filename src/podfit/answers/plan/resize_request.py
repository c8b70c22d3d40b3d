"""The resize request: new CPU and memory for one container or the pod as a whole, or the sizes of a manifest.

How amounts are written is in `amounts`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from podfit.answers.facts.target import Target
from podfit.answers.plan.amounts import Amount, RequestError, resolved
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta import codec
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY, only
from podfit.decide.node.room.annotation import gave
from podfit.decide.resize.proportion import largest_ratio, limit_for

BEFORE = "podfit.dev/resized-from"
"""What a pod had been granted before podfit resized it the first time."""
NOTHING = ResourceRequirements()


class ResizeRequest(msgspec.Struct, frozen=True):
    """`amounts` by resource for one container (or the pod), `containers` what a manifest says of each by name, `undo`
    what each pod was before. `template` is the pods' own, whose limits say which proportion to keep, and `limit_ranges`
    bound it. `autoscaler` is the VPA that gives these sizes to new pods, too; `by_pod` has those of pods, by name, that
    it sizes otherwise than the rest.
    """

    amounts: Mapping[str, Amount] = msgspec.field(default_factory=dict)
    container: str = ""
    containers: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    pod: ResourceRequirements | None = None
    undo: bool = False
    template: PodSpec | None = None
    limit_ranges: tuple[LimitRange, ...] = ()
    autoscaler: str = ""
    by_pod: Mapping[str, "ResizeRequest"] = msgspec.field(default_factory=dict)

    def of(self, pod: Pod) -> "ResizeRequest":
        """What is asked for one pod."""
        own = self.by_pod.get(pod.metadata.name)
        if own is None:
            return self
        return msgspec.structs.replace(own, template=self.template, limit_ranges=self.limit_ranges)


class NothingRecorded(RequestError):
    """--undo of a pod that podfit did not resize."""


class _Remembered(msgspec.Struct):
    containers: dict[str, ResourceRequirements]
    pod: ResourceRequirements | None = None


def remembered(pod: Pod) -> str:
    """The pod's resources for the annotation that --undo reads."""
    named = {container.name: container.resources for container in all_containers(pod.spec)}
    return codec.encode(_Remembered(named, pod.spec.resources)).decode()


def with_template(
    request: ResizeRequest, template: PodSpec | None, limit_ranges: tuple[LimitRange, ...] = ()
) -> ResizeRequest:
    """The request, with what says which proportion the pods' limits are to keep, and how large it may be."""
    return msgspec.structs.replace(request, template=template, limit_ranges=limit_ranges)


def from_template(pod: Pod) -> ResizeRequest:
    """What a manifest says of every container, and of the pod as a whole."""
    named = {container.name: container.resources for container in all_containers(pod.spec)}
    return ResizeRequest(containers=named, pod=pod.spec.resources)


def apply(request: ResizeRequest, pod: Pod) -> Pod:
    """The pod as asked for. Raises RequestError when it has no such container, or several and none was named.

    A resize removes nothing: an amount that a manifest or the earlier size does not have stays (`staying`).
    """
    if request.undo or request.containers or request.pod is not None:
        return _with_sizes(_sizes(request, pod), pod, _kept if request.undo else _added)
    return _typed(request, pod)


def apply_to_template(request: ResizeRequest, template: Pod) -> Pod:
    """The template as asked for; there amounts can be removed, so it gets the very sizes of a manifest."""
    if request.undo or request.containers or request.pod is not None:
        return _with_sizes(_sizes(request, template), template, lambda _, wanted: wanted)
    return _typed(request, template)


def can_undo(pod: Pod) -> bool:
    """Whether there is a size to go back to."""
    return BEFORE in pod.metadata.annotations or gave(pod) is not None


def staying(request: ResizeRequest, pod: Pod) -> Iterator[str]:
    """Amounts that the pod keeps although the wanted sizes do not have them: `memory limit of "app"`."""
    if not (request.undo or request.containers or request.pod is not None):
        return
    after, wanted = apply(request, pod).spec, _sizes(request, pod)
    has_by_name = {container.name: container.resources for container in all_containers(after)}
    meant_by_name = dict(wanted.containers)
    if wanted.pod is not None:
        has_by_name[""], meant_by_name[""] = after.resources or NOTHING, wanted.pod
    for name in (name for name in has_by_name if name in meant_by_name):
        has, meant = has_by_name[name], meant_by_name[name]
        whose = f'of "{name}"' if name else "of the pod"
        for resource in (CPU, MEMORY):
            sides = (("request", has.requests, meant.requests), ("limit", has.limits, meant.limits))
            left = [side for side, now, then in sides if resource in now and now[resource] != then.get(resource)]
            if left:
                yield f"{resource} {' and '.join(left)} {whose}"


def _typed(request: ResizeRequest, pod: Pod) -> Pod:
    name = meant(request.container, pod)
    said = [one[name] for one in _said(request, pod) if name in one]
    changed = _changed(resources_of(name, pod), request.amounts, said, _ratios(request, pod, level=not name))
    if not name:
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=changed))
    return _with_containers(pod, {name: changed})


def meant(container: str, pod: Pod) -> str:
    """The container that a request is about, empty for the pod as a whole. Raises RequestError when there is none."""
    name = container or _only(pod)
    known = [container.name for container in all_containers(pod.spec)]
    if name and name not in known:
        raise RequestError(f'pod {pod.metadata.name} has no container "{name}"; it has {", ".join(known)}')
    return name


def resources_of(name: str, pod: Pod) -> ResourceRequirements:
    """The resources of the container of this name, or of the pod as a whole when it is empty."""
    if not name:
        return pod.spec.resources or NOTHING
    return next(container.resources for container in all_containers(pod.spec) if container.name == name)


def _sizes(request: ResizeRequest, pod: Pod) -> _Remembered:
    """What a manifest says, or what the pod had before."""
    if not request.undo:
        return _Remembered(dict(request.containers), request.pod)
    note, given = pod.metadata.annotations.get(BEFORE), gave(pod)
    if note is not None:
        return _decoded(pod, note)
    if given is not None:
        return _Remembered(
            {
                name: ResourceRequirements(requests=sides.requests, limits=sides.limits)
                for name, sides in given.before.items()
            }
        )
    raise NothingRecorded(f"pod {pod.metadata.name} was not resized by podfit: it has no annotation {BEFORE}")


def _decoded(pod: Pod, note: str) -> _Remembered:
    try:
        return codec.decode(note.encode(), _Remembered)
    except (msgspec.DecodeError, ValueError) as error:
        raise RequestError(f"pod {pod.metadata.name}: annotation {BEFORE} cannot be read: {error}") from error


def _said(request: ResizeRequest, pod: Pod) -> list[dict[str, ResourceRequirements]]:
    """Resources by container, "" for the pod as a whole, that a proportion may have come from, the first one first."""
    note = pod.metadata.annotations.get(BEFORE)
    found = []
    if note is not None:
        before = _decoded(pod, note)
        found.append(dict(before.containers) | ({"": before.pod} if before.pod else {}))
    if request.template is not None:
        level = {"": request.template.resources} if request.template.resources else {}
        found.append(level | {container.name: container.resources for container in all_containers(request.template)})
    return found


def _only(pod: Pod) -> str:
    """The container that is meant when none is named: the only one, or none of them but the pod (empty)."""
    if pod.spec.resources is not None:
        return ""
    if len(pod.spec.containers) == 1:
        return pod.spec.containers[0].name
    names = ", ".join(container.name for container in pod.spec.containers)
    raise RequestError(f"pod {pod.metadata.name} has several containers: name one of {names} with -c")


def _added(has: ResourceRequirements, wanted: ResourceRequirements) -> ResourceRequirements:
    """What the API makes of a patch with these sizes: it adds to those that are there."""
    requests, limits = {**has.requests, **wanted.requests}, {**has.limits, **wanted.limits}
    return msgspec.structs.replace(has, requests=requests, limits=limits)


def _kept(has: ResourceRequirements, before: ResourceRequirements) -> ResourceRequirements:
    """The earlier size as far as it is possible to go back: a request that a limit which stays does not allow stays,
    too."""
    merged = _added(has, before)
    requests, limits = dict(merged.requests), merged.limits
    for name in (CPU, MEMORY):
        if name in limits and requests.get(name, ZERO) > limits[name]:
            requests.pop(name)
            requests |= only(has.requests, (name,))
    return msgspec.structs.replace(merged, requests=requests)


def _with_sizes(
    sizes: _Remembered, pod: Pod, made: Callable[[ResourceRequirements, ResourceRequirements], ResourceRequirements]
) -> Pod:
    """`made` of what a container has and what it is to have."""
    old = {container.name: container.resources for container in all_containers(pod.spec)}
    changed = _with_containers(
        pod, {name: made(old[name], wanted) for name, wanted in sizes.containers.items() if name in old}
    )
    if sizes.pod is None:
        return changed
    level = made(pod.spec.resources or NOTHING, sizes.pod)
    return msgspec.structs.replace(changed, spec=msgspec.structs.replace(changed.spec, resources=level))


def _with_containers(pod: Pod, wanted: Mapping[str, ResourceRequirements]) -> Pod:
    def carried(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            msgspec.structs.replace(container, resources=wanted.get(container.name, container.resources))
            for container in containers
        )

    spec = msgspec.structs.replace(
        pod.spec, containers=carried(pod.spec.containers), init_containers=carried(pod.spec.init_containers)
    )
    return msgspec.structs.replace(pod, spec=spec)


def _ratios(request: ResizeRequest, pod: Pod, *, level: bool = False) -> dict[str, Quantity | None]:
    """What limit / request must not exceed by rounding, by resource. A template is of no namespace yet."""
    namespace = pod.metadata.namespace
    ranges = [
        limit_range
        for limit_range in request.limit_ranges
        if not namespace or limit_range.metadata.namespace == namespace
    ]
    alone = len(pod.spec.containers) + len(pod.spec.init_containers) == 1
    return {name: largest_ratio(name, ranges, alone=alone, level=level) for name in request.amounts}


def _changed(
    resources: ResourceRequirements,
    amounts: Mapping[str, Amount],
    said: Sequence[ResourceRequirements],
    ratios: Mapping[str, Quantity | None],
) -> ResourceRequirements:
    requests, limits = dict(resources.requests), dict(resources.limits)
    for name, amount in amounts.items():
        before, limit = requests.get(name), limits.get(name)
        if amount.request is not None:
            requests[name] = resolved(amount.request, before, f"{name} request")
            if limit is not None and amount.limit is None:
                pairs = [(one.requests.get(name, ZERO), one.limits[name]) for one in said if name in one.limits]
                now = (before or ZERO, limit)
                limits[name] = limit_for(requests[name], now, pairs, memory=name == "memory", ratio=ratios[name])
        if amount.limit is not None:
            limits[name] = resolved(amount.limit, limit, f"{name} limit")
    return msgspec.structs.replace(resources, requests=requests, limits=limits)


def manifest_of(documents: Sequence[Any], target: Target) -> PodSpec:
    """The template of the target among the documents of a file. Raises RequestError when it is not there."""
    fitting = [document for document in documents if isinstance(document, dict) and _is_about(document, target)]
    if len(fitting) != 1:
        which = "no document" if not fitting else f"more than one of {len(documents)} documents"
        raise RequestError(f'{which} is {target.kind.kind} "{target.name}"')
    try:
        spec = fitting[0]["spec"]
        return codec.convert(spec["template"]["spec"] if target.is_workload else spec, PodSpec)
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError(f'{target.kind.kind} "{target.name}" cannot be read: {why_unreadable(error)}') from error


def why_unreadable(error: Exception) -> str:
    return f"no field {error}" if isinstance(error, KeyError) else str(error)


def _is_about(document: dict[str, Any], target: Target) -> bool:
    meta = document.get("metadata")
    named = meta.get("name") if isinstance(meta, dict) else None
    return (document.get("kind"), named) == (target.kind.kind, target.name)
