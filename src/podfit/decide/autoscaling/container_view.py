"""What the autoscaler takes for a container's resources: those that its node reports, else those of the spec."""

from collections.abc import Iterator

from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU


def resources_of(pod: Pod, container: Container) -> ResourceRequirements:
    """Of the container's status where it says them."""
    for status in pod.status.container_statuses:
        if status.name == container.name and status.resources is not None:
            return status.resources
    return container.resources


def every_container(pod: Pod) -> Iterator[tuple[Container, ResourceRequirements]]:
    """The containers that are scaled, with their resources: init containers and sidecars are not."""
    return ((container, resources_of(pod, container)) for container in pod.spec.containers)


def units(name: str, amount: Quantity | None) -> int:
    """What sums are made in: millicores of CPU, whole bytes and pieces of anything else."""
    found = amount or ZERO
    return found.milli() if name == CPU else found.value()


def amount_of(name: str, number: int, like: Quantity) -> Quantity:
    """Back from `units`, printed in the family of suffixes that `like` has."""
    return Quantity.of_milli(number) if name == CPU else Quantity.of(number, like.format)
