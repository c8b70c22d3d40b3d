"""The scaled containers of a pod, or the pod as a whole, and their resources: those that the node reports, else those
of the spec.
"""

from collections.abc import Container as Among
from collections.abc import Iterator
from typing import NamedTuple

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU


def resources_of(pod: Pod, container: Container) -> ResourceRequirements:
    """The resources in the container's status where it says them."""
    for status in statuses_of(pod):
        if status.name == container.name and status.resources is not None:
            return status.resources
    return container.resources


WHOLE = ""
"""Stands for the pod as a whole where a container is named."""
_NOTHING = ResourceRequirements()


class Scaled(NamedTuple):
    """`own` are its resources, `path` is where they stand in the pod; `place` says which one it is."""

    container: Container
    own: ResourceRequirements
    path: str
    place: str
    sidecar: bool


def every_container(pod: Pod) -> Iterator[Scaled]:
    """Containers, then native sidecars: init containers that go on. Those that end are not scaled."""
    for index, container in enumerate(pod.spec.containers):
        path = f"/spec/containers/{index}/resources"
        yield Scaled(container, resources_of(pod, container), path, f"container {index}", sidecar=False)
    for index, container in enumerate(pod.spec.init_containers):
        if is_sidecar(container):
            path = f"/spec/initContainers/{index}/resources"
            yield Scaled(container, resources_of(pod, container), path, f"init container {index}", sidecar=True)


def sized(pod: Pod, names: Among[str]) -> Iterator[Scaled]:
    """What sizes for `names` are for: the pod as a whole where WHOLE is among them, and containers that are among them
    as well; else its containers, all of them.
    """
    if WHOLE not in names:
        yield from every_container(pod)
        return
    asked = pod.spec.resources or _NOTHING
    own = pod.status.resources if pod.spec.resources is not None and pod.status.resources is not None else asked
    yield Scaled(Container(name=WHOLE, resources=asked), own, "/spec/resources", "pod", sidecar=False)
    yield from (scaled for scaled in every_container(pod) if scaled.container.name in names)


def statuses_of(pod: Pod) -> Iterator[ContainerStatus]:
    """The statuses of all its containers."""
    yield from pod.status.container_statuses
    yield from pod.status.init_container_statuses


def units(name: str, amount: Quantity | None) -> int:
    """What sums are made in: millicores of CPU, whole bytes and pieces of anything else."""
    found = amount or ZERO
    return found.milli() if name == CPU else found.value()


def amount_of(name: str, number: int, like: Quantity) -> Quantity:
    """Back from `units`, printed in the family of suffixes that `like` has."""
    return Quantity.of_milli(number) if name == CPU else Quantity.of(number, like.format)
