"""The resource formula of a pod: what its containers need at once, by which everything counts a pod.

Init containers run one after another before the regular ones; those that are sidecars stay. So a pod needs either what
runs in the end, regular containers and sidecars together, or the hungriest moment on the way there.
"""

from collections.abc import Callable

from podfit.api.core.v1.pods.containers import Container, EphemeralContainer
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.base import ResourceList
from podfit.core.resources import add, maximum


def is_sidecar(container: Container) -> bool:
    """An init container that keeps running beside the regular ones."""
    return container.restart_policy == "Always"


def all_containers(spec: PodSpec) -> tuple[Container, ...]:
    """Init containers, then regular ones, as they start. Ephemeral containers have no size and are not among them."""
    return (*spec.init_containers, *spec.containers)


def regular_first(spec: PodSpec) -> tuple[Container, ...]:
    """Regular containers, then init ones: the order of messages about both in upstream's validation and LimitRanger."""
    return (*spec.containers, *spec.init_containers)


def with_ephemeral(spec: PodSpec) -> tuple[Container | EphemeralContainer, ...]:
    """All that a pod can have, the ephemeral ones last."""
    return (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)


def sidecars(spec: PodSpec) -> tuple[Container, ...]:
    return tuple(filter(is_sidecar, spec.init_containers))


def sidecar_names(spec: PodSpec) -> frozenset[str]:
    return frozenset(container.name for container in spec.init_containers if is_sidecar(container))


def lasting_containers(spec: PodSpec) -> tuple[Container, ...]:
    """What runs once a pod has started: regular containers, then sidecars."""
    return (*spec.containers, *sidecars(spec)) if spec.init_containers else spec.containers


def aggregate(spec: PodSpec, measure: Callable[[Container], ResourceList]) -> ResourceList:
    """The need of the whole, by resource name; `measure` says what one container needs."""
    running = add(*map(measure, spec.containers))
    if not spec.init_containers:
        return running
    sidecars: ResourceList = {}
    peak: ResourceList = {}
    for container in spec.init_containers:
        needed = measure(container)
        if is_sidecar(container):
            running, sidecars = add(running, needed), add(sidecars, needed)
            peak = maximum(peak, sidecars)
        else:
            peak = maximum(peak, add(needed, sidecars))
    return maximum(running, peak)


def requests_of(container: Container) -> ResourceList:
    return container.resources.requests


def limits_of(container: Container) -> ResourceList:
    return container.resources.limits
