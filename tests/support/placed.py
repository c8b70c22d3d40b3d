"""Pods as a node meets them: with a UID, a QoS class and a size that can be changed."""

import msgspec

from podfit.api.core.v1.pods.containers import ContainerResizePolicy, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.pod.qos import qos_class

RESTART_CPU = ContainerResizePolicy(resource_name="cpu", restart_policy="RestartContainer")
RESTART_MEMORY = ContainerResizePolicy(resource_name="memory", restart_policy="RestartContainer")


def placed(pod: Pod, *, uid: str = "") -> Pod:
    """The pod with its QoS class, and its name for a UID unless one is given."""
    meta = msgspec.structs.replace(pod.metadata, uid=uid or pod.metadata.name)
    status = msgspec.structs.replace(pod.status, qos_class=qos_class(pod))
    return msgspec.structs.replace(pod, metadata=meta, status=status)


def resized(pod: Pod, *, level: ResourceRequirements | None = None, **containers: ResourceRequirements) -> Pod:
    """The next generation of the pod, with other resources for the containers named and for the pod."""
    init, regular = (
        tuple(
            msgspec.structs.replace(container, resources=containers.get(container.name, container.resources))
            for container in group
        )
        for group in (pod.spec.init_containers, pod.spec.containers)
    )
    spec = msgspec.structs.replace(
        pod.spec, init_containers=init, containers=regular, resources=level or pod.spec.resources
    )
    meta = msgspec.structs.replace(pod.metadata, generation=pod.metadata.generation + 1)
    return msgspec.structs.replace(pod, spec=spec, metadata=meta)
