"""JSON patches that set a pod's resources, at its creation and at its resize.

`add` of a member of a map replaces it where it exists; maps that are absent are added first.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.codec import convert, to_dict
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, maximum
from podfit.decide.autoscaling import boost
from podfit.decide.autoscaling.container_view import WHOLE, every_container, sized
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.limit_range_capping import for_pod
from podfit.decide.autoscaling.limit_ranges import NOTHING, effective, proportional_limits
from podfit.decide.autoscaling.policies import (
    OFF,
    boost_of,
    is_off,
    names_of,
    policy_of,
    recommended,
    scaled_limits,
    update_mode,
)
from podfit.decide.autoscaling.slices import told_to

OBSERVED, UPDATES = "vpaObservedContainers", "vpaUpdates"
Operation = dict[str, Any]


class Resources(msgspec.Struct, frozen=True):
    """What a container is to have, and what was said on the way; both maps are empty when nothing is recommended."""

    requests: ResourceList = NOTHING
    limits: ResourceList = NOTHING
    notes: tuple[str, ...] = ()


def recommended_resources(
    pod: Pod, vpa: VerticalPodAutoscaler, limit_ranges: Iterable[LimitRange]
) -> Mapping[str, Resources]:
    """The resources by container, or of WHOLE; those without a recommendation are left out."""
    vpa = told_to(vpa, pod)
    limit_ranges, policy = tuple(limit_ranges), vpa.spec.resource_policy
    annotations = vpa.metadata.annotations
    processed = for_pod(pod, vpa.status.recommendation, policy, limit_ranges, annotations)
    item, found = effective(limit_ranges, "Container"), {}
    for container, own, *_ in sized(pod, names_of(processed.recommendation)):
        resources = recommended(processed.recommendation, container.name)
        if resources is None:
            continue
        requests = {name: amount for name, amount in resources.target.items() if name}
        notes, limits = processed.notes.get(container.name, ()), NOTHING
        follow = scaled_limits(policy_of(policy, container.name), container.name, annotations)
        if follow:
            defaults = item.default if item and container.name != WHOLE else NOTHING
            scaled = proportional_limits(own, requests, defaults)
            limits = {name: amount for name, amount in scaled.amounts.items() if name in follow}
            said = (note for note in scaled.notes if note.partition(":")[0] in follow)
            notes = (*notes, *said)
        if container.name == WHOLE:
            limits = _around_containers(pod, limits)
        found[container.name] = Resources(requests, limits, notes)
    return found


def _around_containers(pod: Pod, limits: ResourceList) -> ResourceList:
    """Limits of a pod as a whole: none of its containers may have a larger one."""
    own = maximum(*(container.resources.limits for container in all_containers(pod.spec)))
    return {name: max(amount, own.get(name, amount)) for name, amount in limits.items()}


def admission_patches(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    limit_ranges: Iterable[LimitRange],
    gates: Gates,
    most_boost: Quantity | None = None,
) -> tuple[Operation, ...]:
    """For a pod that is made, under the VPA that controls it (V-064, V-065). BoostError: nothing is to be changed."""
    operations: list[Operation] = []
    if not pod.metadata.annotations:
        operations.append(_add("/metadata/annotations", {}))
    vpa = told_to(vpa, pod)
    wanted = {} if update_mode(vpa) == OFF else recommended_resources(pod, vpa, limit_ranges)
    updates: list[str] = []
    for container, own, path, place, sidecar in sized(pod, wanted):
        policy = policy_of(vpa.spec.resource_policy, container.name)
        if (gates.cpu_startup_boost and is_off(policy)) or (sidecar and container.name not in wanted):
            continue
        resources = wanted.get(container.name, Resources())
        more = boost_of(vpa, container.name) if container.name != WHOLE else None
        if gates.cpu_startup_boost and more is not None and not sidecar:
            operations.append(annotate(boost.ANNOTATION + container.name, boost.annotation(container.resources)))
            request = resources.requests.get(CPU)
            found = boost.boosted(more, own, request, limits=_scales_cpu(vpa, container.name), most=most_boost)
            resources = _with_boost(resources, found)
        changes = tuple(resource_patches(path, own, resources))
        operations += changes
        if changes:
            written = [
                *resources.notes,
                *(f"{name} request" for name in resources.requests),
                *(f"{name} limit" for name in resources.limits),
            ]
            updates.append(f"{place}: {', '.join(written)}")
    if updates:
        text = f"Pod resources updated by {vpa.metadata.name}: {'; '.join(updates)}"
        operations.append(annotate(UPDATES, text))
    operations.append(annotate(OBSERVED, ", ".join(scaled.container.name for scaled in every_container(pod))))
    return tuple(operations)


def sized_by(pod: Pod, patches: Iterable[Operation]) -> list[str]:
    """The containers whose resources the patches of an admission change."""
    paths = tuple(str(operation["path"]) for operation in patches)
    return [
        scaled.container.name for scaled in every_container(pod) if any(path.startswith(scaled.path) for path in paths)
    ]


def boosted_again(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    recommended: Mapping[str, Resources],
    names: Iterable[str],
    most_boost: Quantity | None,
) -> tuple[dict[str, Resources], tuple[Operation, ...]]:
    """For containers that start again: what each is to have, and the notes of what they had. Raises BoostError."""
    wanted, notes, again = dict[str, Resources](), list[Operation](), set(names)
    if not pod.metadata.annotations:
        notes.append(_add("/metadata/annotations", {}))
    for container, own, *_, sidecar in every_container(pod):
        more = boost_of(vpa, container.name)
        if sidecar or container.name not in again or more is None:
            continue
        notes.append(annotate(boost.ANNOTATION + container.name, boost.annotation(container.resources)))
        resources = recommended.get(container.name, Resources())
        limits = _scales_cpu(vpa, container.name)
        found = boost.boosted(more, own, resources.requests.get(CPU), limits=limits, most=most_boost)
        wanted[container.name] = _with_boost(resources, found)
    return wanted, tuple(notes)


def _scales_cpu(vpa: VerticalPodAutoscaler, container: str) -> bool:
    return CPU in scaled_limits(policy_of(vpa.spec.resource_policy, container), container, vpa.metadata.annotations)


def _with_boost(resources: Resources, boosted: boost.Boosted) -> Resources:
    """A limit that is not scaled from the container's own is kept, but not below the request, which the API refuses."""
    limit = boosted.limit
    if limit is None and CPU in resources.limits:
        limit = max(resources.limits[CPU], boosted.request)
    limits = {name: amount for name, amount in resources.limits.items() if name != CPU}
    if limit is not None:
        limits[CPU] = limit
    return Resources({**resources.requests, CPU: boosted.request}, limits, resources.notes)


def resource_patches(path: str, own: ResourceRequirements, wanted: Resources) -> Iterator[Operation]:
    """The patches of the container whose resources, `own`, stand at `path`."""
    if not own.requests and not own.limits:
        yield _add(path, {})
    for kind, has, amounts in (("requests", own.requests, wanted.requests), ("limits", own.limits, wanted.limits)):
        if amounts and not has:
            yield _add(f"{path}/{kind}", {})
        yield from (_add(f"{path}/{kind}/{_escaped(name)}", str(amount)) for name, amount in amounts.items())


def without_ceiling(pod: Pod) -> Iterator[Operation]:
    """Another size has another burst ceiling: the one of the old size goes in the same write."""
    if CEILING in pod.metadata.annotations:
        yield annotate(CEILING, "{}")


def resized(pod: Pod, operations: Iterable[Operation]) -> Pod:
    """The pod with these additions, parents of which are added first."""
    document = to_dict(pod)
    for operation in operations:
        *way, name = (segment.replace("~1", "/").replace("~0", "~") for segment in operation["path"][1:].split("/"))
        member: Any = document
        for segment in way:
            member = member[int(segment)] if isinstance(member, list) else member[segment]
        member[name] = operation["value"]
    return convert(document, Pod)


def _add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}


def annotate(name: str, text: str) -> Operation:
    return _add(f"/metadata/annotations/{_escaped(name)}", text)


def _escaped(segment: str) -> str:
    return segment.replace("~", "~0").replace("/", "~1")
