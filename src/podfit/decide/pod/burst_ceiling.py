"""The burst ceiling of a pod: between which limits its node may move a container by itself (docs/burst.md).

It stands in an annotation of the pod, for each container and resource the least limit to give back to and the most to
raise to:

    podfit.dev/burst-ceiling: {"app": {"floor": {"cpu": "200m"}, "ceiling": {"cpu": "2"}}}

A limit is raised alone in a Burstable pod, and together with its request in a Guaranteed one, which stays one.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY, maximum
from podfit.decide.pod.qos import held_class

BURSTING = (CPU, MEMORY)
LONGEST = 16 * 1024
"""Characters of the annotation."""


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    floor: dict[str, str]
    ceiling: dict[str, str]


class BurstRange(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a container by resource; both have the same names."""

    floor: ResourceList
    ceiling: ResourceList


def read_ranges(text: str) -> Mapping[str, BurstRange]:
    """What the annotation says, by container. ValueError says what is wrong with it."""
    if len(text) > LONGEST:
        raise ValueError(f"must have at most {LONGEST} characters")
    try:
        written = msgspec.json.decode(text, type=dict[str, _Written])
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    return {name: _range(name, sides) for name, sides in written.items()}


def _range(container: str, written: _Written) -> BurstRange:
    floor, ceiling = (
        {name: Quantity.parse(amount) for name, amount in side.items()} for side in (written.floor, written.ceiling)
    )
    if floor.keys() != ceiling.keys() or not ceiling or not ceiling.keys() <= set(BURSTING):
        raise ValueError(f"floor and ceiling of container {container} must name the same of cpu and memory")
    for name, most in ceiling.items():
        if not 0 < floor[name].nano <= most.nano:
            raise ValueError(f"{name} of container {container}: the floor must be above zero and at most the ceiling")
    return BurstRange(floor=floor, ceiling=ceiling)


def written_ranges(ranges: Mapping[str, BurstRange]) -> str:
    """The annotation, always the same for the same ranges."""
    sides = {
        name: {
            side: {resource: str(amount) for resource, amount in sorted(getattr(between, side).items())}
            for side in ("floor", "ceiling")
        }
        for name, between in sorted(ranges.items())
    }
    return msgspec.json.encode(sides).decode()


@lru_cache(maxsize=1024)
def _known(text: str) -> Mapping[str, BurstRange]:
    try:
        return read_ranges(text)
    except ValueError:
        return {}


def ranges_of(pod: Pod) -> Mapping[str, BurstRange]:
    """The ranges by container; none where the annotation is missing or cannot be read."""
    text = pod.metadata.annotations.get(CEILING)
    return _known(text) if text is not None else {}


def with_limits(pod: Pod, limits: Mapping[str, ResourceList], gates: FeatureGates = DEFAULT_GATES) -> Pod:
    """The pod with these limits, by container, and in a Guaranteed one with requests that are the same."""
    both = held_class(pod, gates) == "Guaranteed"
    containers = tuple(_limited(container, limits.get(container.name), both=both) for container in pod.spec.containers)
    if all(new is old for new, old in zip(containers, pod.spec.containers, strict=True)):
        return pod
    return replace(pod, spec=replace(pod.spec, containers=containers))


def _limited(container: Container, limits: ResourceList | None, *, both: bool) -> Container:
    own = container.resources
    changed = {name: amount for name, amount in (limits or {}).items() if own.limits.get(name, amount) != amount}
    return replace(container, resources=_with(own, changed, both=both)) if changed else container


def _with(own: ResourceRequirements, limits: ResourceList, *, both: bool) -> ResourceRequirements:
    requests = {**own.requests, **{name: amount for name, amount in limits.items() if name in own.requests}}
    return replace(own, limits={**own.limits, **limits}, requests=requests if both else own.requests)


def at_ceiling(pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> Pod:
    """The pod at the most that it may have without being asked for; the same object where that is no more."""
    ranges = ranges_of(pod)
    if not ranges:
        return pod
    limits = {
        container.name: maximum(container.resources.limits, ranges[container.name].ceiling)
        for container in pod.spec.containers
        if container.name in ranges
    }
    return with_limits(pod, limits, gates)


def at_floor(pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> Pod:
    """The pod without its burst, as its owner sized it, in spec and status; the same object where it has no ceiling."""
    ranges = ranges_of(pod)
    if not ranges:
        return pod
    both = held_class(pod, gates) == "Guaranteed"
    containers = tuple(_floored(container, ranges.get(container.name), both=both) for container in pod.spec.containers)
    statuses = tuple(_floored(status, ranges.get(status.name), both=both) for status in pod.status.container_statuses)
    return replace(
        pod, spec=replace(pod.spec, containers=containers), status=replace(pod.status, container_statuses=statuses)
    )


Sized = TypeVar("Sized", Container, ContainerStatus)


def _floored(sized: Sized, found: BurstRange | None, *, both: bool) -> Sized:
    own = sized.resources
    if found is None or own is None:
        return sized
    lower = {name: least for name, least in found.floor.items() if least < own.limits.get(name, least)}
    return replace(sized, resources=_with(own, lower, both=both)) if lower else sized
