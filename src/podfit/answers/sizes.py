"""A pod's amounts side by side: desired (spec), allocated (what the node set aside), actual (what is enforced)."""

from collections.abc import Iterator

import msgspec

from podfit.answers.effects import RESOURCES
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.decide.pod.allocated import NOTHING, resizable
from podfit.decide.resize.by_status import allocated as allocated_by_status


class Size(msgspec.Struct, frozen=True):
    """One amount in its three states; `container` is empty for the pod as a whole, an amount that is not set is empty.

    Limits are not allocated separately: `allocated` repeats what the node enforces of them.
    """

    container: str
    resource: str
    side: str
    desired: str
    allocated: str
    actual: str

    @property
    def agrees(self) -> bool:
        return self.desired == self.allocated == self.actual


def sizes_of(pod: Pod, gates: FeatureGates) -> Iterator[Size]:
    """The pod as a whole first when it has resources, then by container."""
    record = allocated_by_status(pod, gates)
    statuses = {status.name: status for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    if pod.spec.resources is not None:
        allocated = (record.pod if record else None) or (pod.spec.resources if pod.spec.node_name else NOTHING)
        yield from _amounts("", pod.spec.resources, allocated, pod.status.resources or NOTHING)
    for container in resizable(pod, gates):
        status = statuses.get(container.name)
        actual = (status.resources if status else None) or NOTHING
        admitted = container.resources if pod.spec.node_name else NOTHING
        allocated = record.containers.get(container.name, admitted) if record else admitted
        yield from _amounts(container.name, container.resources, allocated, actual)


def _amounts(
    name: str, desired: ResourceRequirements, allocated: ResourceRequirements, actual: ResourceRequirements
) -> Iterator[Size]:
    for resource in RESOURCES:
        for side in ("requests", "limits"):
            three = [str(getattr(amounts, side).get(resource, "")) for amounts in (desired, allocated, actual)]
            if any(three):
                yield Size(name, resource, side, *three)
