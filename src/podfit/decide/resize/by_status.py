"""Allocated and actual resources of a pod, read off its reported status, and a node as the API tells of it.

For whoever is not on the node, and for a node that has lost its own records.
"""

from collections.abc import Iterator

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO
from podfit.decide.cgroup.container_resources import Machine, effective
from podfit.decide.pod.allocated import NOTHING, PodResources, overlay, resizable
from podfit.decide.resize.verdict import NodeView

PRESSURES = ("DiskPressure", "MemoryPressure", "PIDPressure")


def allocated(pod: Pod, gates: FeatureGates) -> PodResources | None:
    """Allocated requests and actual limits; None when no container was ever reported with resources."""
    reported = {
        container.name: ResourceRequirements(
            claims=container.resources.claims,
            requests=status.allocated_resources,
            limits=_own_limits(pod, container, status),
        )
        for container, status in _reported(pod, gates)
    }
    if not reported:
        return None
    spec = {container.name: container.resources for container in resizable(pod, gates)}
    return PodResources(spec | reported, _level(pod, allocated=True))


def actuated(pod: Pod, gates: FeatureGates) -> PodResources | None:
    """What the node enforced; None when it has not said."""
    actual = {container.name: status.resources for container, status in _reported(pod, gates) if status.resources}
    if not actual:
        return None
    level = _level(pod, allocated=False)
    seen = overlay(pod, PodResources(actual, level), gates)
    records = {
        container.name: effective(seen, container) for container in resizable(seen, gates) if container.name in actual
    }
    return PodResources(records, level)


def _reported(pod: Pod, gates: FeatureGates) -> Iterator[tuple[Container, ContainerStatus]]:
    known = {status.name: status for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    for container in resizable(pod, gates):
        status = known.get(container.name)
        if status is not None and status.resources is not None:
            yield container, status


def _own_limits(pod: Pod, container: Container, status: ContainerStatus) -> ResourceList:
    """Without those that a container only has because the pod has them, which the runtime enforces and reports too."""
    if status.resources is None:
        return container.resources.limits
    own, level = container.resources.limits, (pod.spec.resources or NOTHING).limits
    return {name: amount for name, amount in status.resources.limits.items() if name in own or name not in level}


def _level(pod: Pod, *, allocated: bool) -> ResourceRequirements | None:
    """Only what the spec names: the status reports totals for every pod."""
    spec, status = pod.spec.resources, pod.status.resources
    if spec is None or status is None:
        return spec
    requests = pod.status.allocated_resources if allocated else status.requests
    return msgspec.structs.replace(
        spec,
        requests={name: requests.get(name, amount) for name, amount in spec.requests.items()},
        limits={name: status.limits.get(name, amount) for name, amount in spec.limits.items()},
    )


def node_view(
    node: Node, gates: FeatureGates, *, swaps: bool = False, cpu_manager: str = "none", memory_manager: str = "None"
) -> NodeView:
    """Only the kubelet knows whose CPUs are whose, and whether it is about to shut down. A node that `swaps` is taken
    for one with cgroup v2, as others cannot.
    """
    status = node.status
    swap = status.node_info.swap.capacity if status.node_info.swap else 0
    machine = Machine(
        memory=status.capacity.get("memory", ZERO).value(),
        gates=gates,
        swap=swap if swaps else 0,
        cgroup="v2" if swaps else "v1",
        static_cpus=cpu_manager == "static",
    )
    return NodeView(
        allocatable=status.allocatable,
        node=node,
        machine=machine,
        platform=node.metadata.labels.get("kubernetes.io/os", "linux"),
        cpu_manager=cpu_manager,
        memory_manager=memory_manager,
        pressure=tuple(
            condition.type
            for condition in status.conditions
            if condition.type in PRESSURES and condition.status == "True"
        ),
    )
