"""A pod's status when its resize is actuated: how a step in virtual time ends an actuation."""

from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod, PodStatus


def settled_status(allocated: Pod) -> PodStatus:
    """`allocated` is the pod at its allocated size, with its newest status; what was never reported stays so."""
    status, spec = allocated.status, allocated.spec
    sizes = {container.name: container.resources for container in all_containers(spec)}
    level = spec.resources
    if level is not None and status.resources is not None:
        status = replace(status, resources=level, allocated_resources=level.requests)
    return replace(
        status,
        container_statuses=_settled(status.container_statuses, sizes),
        init_container_statuses=_settled(status.init_container_statuses, sizes),
    )


def _settled(
    statuses: tuple[ContainerStatus, ...], sizes: dict[str, ResourceRequirements]
) -> tuple[ContainerStatus, ...]:
    return tuple(
        status
        if status.resources is None or status.name not in sizes
        else replace(status, resources=sizes[status.name], allocated_resources=sizes[status.name].requests)
        for status in statuses
    )
