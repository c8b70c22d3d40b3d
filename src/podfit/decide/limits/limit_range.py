"""LimitRanger's rules: a namespace's defaults for pods, and their bounds."""

from collections.abc import Iterable, Iterator

import msgspec

from podfit.api.core.v1.limits.types import LimitRange, LimitRangeItem
from podfit.api.core.v1.pods.aggregate import regular_first
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import Quantity
from podfit.decide.forbidden import Forbidden
from podfit.decide.pod.requests import pod_limits, pod_requests
from podfit.decide.pod.spare import is_spare, refusal

ANNOTATION = "kubernetes.io/limit-ranger"


def add_defaults(pod: Pod, limit_ranges: Iterable[LimitRange]) -> Pod:
    """The pod with `default` and `defaultRequest` where a container names none, and an annotation that says so. A pod
    on spare capacity stays without: with requests of its own it would not be one."""
    if is_spare(pod) and not refusal(pod):
        return pod
    for limits in limit_ranges:
        pod = _add(pod, limits)
    return pod


def _add(pod: Pod, limits: LimitRange) -> Pod:
    items = [item for item in (limits.spec.limits or ()) if item.type == "Container"]
    requests = {name: amount for item in items for name, amount in item.default_request.items()}
    maxima = {name: amount for item in items for name, amount in item.default.items()}
    notes: list[str] = []
    containers = tuple(_filled(container, requests, maxima, "container", notes) for container in pod.spec.containers)
    init = tuple(
        _filled(container, requests, maxima, "init container", notes) for container in pod.spec.init_containers
    )
    if not notes:
        return pod
    note = f"LimitRanger plugin set: {'; '.join(notes)}"
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, annotations={**pod.metadata.annotations, ANNOTATION: note}),
        spec=msgspec.structs.replace(pod.spec, containers=containers, init_containers=init),
    )


def _filled(
    container: Container, requests: ResourceList, limits: ResourceList, sort: str, notes: list[str]
) -> Container:
    own = container.resources
    lacking = {"request": sorted(requests.keys() - own.requests), "limit": sorted(limits.keys() - own.limits)}
    notes += [f"{', '.join(names)} {side} for {sort} {container.name}" for side, names in lacking.items() if names]
    if not any(lacking.values()):
        return container
    resources = msgspec.structs.replace(own, requests={**requests, **own.requests}, limits={**limits, **own.limits})
    return msgspec.structs.replace(container, resources=resources)


def by_default(pod: Pod, container: str) -> frozenset[tuple[str, str]]:
    """What the annotation says was put into a container for want of its own: (request or limit, resource)."""
    _, _, text = pod.metadata.annotations.get(ANNOTATION, "").partition(": ")
    found: set[tuple[str, str]] = set()
    for part in text.split("; "):
        amounts, _, whose = part.partition(" for ")
        names, _, side = amounts.rpartition(" ")
        if whose in (f"container {container}", f"init container {container}"):
            found.update((side, name) for name in names.split(", "))
    return frozenset(found)


def check_limits(pod: Pod, limit_ranges: Iterable[LimitRange], gates: FeatureGates = DEFAULT_GATES) -> Forbidden | None:
    """The first LimitRange that objects, with all its objections (R-060 to R-062).

    A pod's totals are those of its spec, without overhead; pod-level values take the place of the aggregate.
    """
    for limits in limit_ranges:
        problems = list(dict.fromkeys(text for item in (limits.spec.limits or ()) for text in _item(pod, item, gates)))
        if problems:
            return Forbidden(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return None


def _item(pod: Pod, item: LimitRangeItem, gates: FeatureGates) -> Iterator[str]:
    if item.type == "Container":
        for container in regular_first(pod.spec):
            yield from _constraints(item, container.resources.requests, container.resources.limits)
    elif item.type == "Pod":
        requests = pod_requests(pod, gates=gates, overhead=False)
        yield from _constraints(item, requests, pod_limits(pod, gates=gates, overhead=False))


def _constraints(item: LimitRangeItem, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    for name, bound in sorted(item.min.items()):
        yield from _minimum(
            f"minimum {name} usage per {item.type} is {bound}", bound, requests.get(name), limits.get(name)
        )
    for name, bound in sorted(item.max.items()):
        yield from _maximum(
            f"maximum {name} usage per {item.type} is {bound}", bound, requests.get(name), limits.get(name)
        )
    for name, bound in sorted(item.max_limit_request_ratio.items()):
        rule = f"{name} max limit to request ratio per {item.type} is {bound}"
        yield from _ratio(rule, bound, requests.get(name), limits.get(name))


def _minimum(rule: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if request is None:
        yield f"{rule}.  No request is specified"
    elif request < bound:
        yield f"{rule}, but request is {request}"
    elif limit is not None and limit < bound:
        yield f"{rule}, but limit is {limit}"


def _maximum(rule: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if limit is None:
        yield f"{rule}.  No limit is specified"
    elif limit > bound:
        yield f"{rule}, but limit is {limit}"
    elif request is not None and request > bound:
        yield f"{rule}, but request is {request}"


def _ratio(rule: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if not request:
        yield f"{rule}, but no request is specified or request is 0"
    elif not limit:
        yield f"{rule}, but no limit is specified or limit is 0"
    elif limit.nano * Quantity.of(1).nano > bound.nano * request.nano:
        yield f"{rule}, but provided ratio is {limit.nano / request.nano:f}"
