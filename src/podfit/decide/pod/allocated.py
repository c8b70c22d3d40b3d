"""The allocated pod: the desired pod with the allocated resources laid over it.

The same record, `PodResources`, holds what was allocated and what was actuated. `overlay` answers the very pod it was
given when nothing differs, so `overlay(pod, stored) is not pod` asks whether a resize is pending.
"""

from collections.abc import Iterator, Mapping

import msgspec

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates

NOTHING = ResourceRequirements()


class PodResources(msgspec.Struct, frozen=True):
    """Resources by container name, and those of the pod as a whole when its spec has them.

    `restarting` are containers that the kubelet stops in order to start them anew, with the id of the instance that
    ends. It is noted before the stop, so that the start does not depend on who remembers why the instance ended.
    """

    containers: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    pod: ResourceRequirements | None = None
    restarting: Mapping[str, str] = msgspec.field(default_factory=dict)

    def with_container(self, name: str, resources: ResourceRequirements) -> "PodResources":
        return msgspec.structs.replace(self, containers={**self.containers, name: resources})


def resizable(pod: Pod, gates: FeatureGates) -> Iterator[Container]:
    """Init containers, then regular ones; init containers that are no sidecars only with their gate."""
    with_init = gates["InPlacePodVerticalScalingInitContainers"]
    yield from (container for container in pod.spec.init_containers if with_init or is_sidecar(container))
    yield from pod.spec.containers


def resources_of(pod: Pod, gates: FeatureGates) -> PodResources:
    """What would be allocated if the pod were admitted as it stands."""
    level = pod.spec.resources if gates["InPlacePodLevelResourcesVerticalScaling"] else None
    return PodResources({container.name: container.resources for container in resizable(pod, gates)}, level)


def overlay(pod: Pod, stored: PodResources | None, gates: FeatureGates) -> Pod:
    """`pod` with the stored resources; the same object when it agrees with them or nothing is stored."""
    if stored is None:
        return pod
    spec = pod.spec
    containers = _overlaid(spec.containers, stored)
    init = _overlaid(spec.init_containers, stored)
    level = spec.resources
    if gates["InPlacePodLevelResourcesVerticalScaling"] and (level or NOTHING) != (stored.pod or NOTHING):
        level = stored.pod
    if containers is spec.containers and init is spec.init_containers and level is spec.resources:
        return pod
    changed = msgspec.structs.replace(spec, containers=containers, init_containers=init, resources=level)
    return msgspec.structs.replace(pod, spec=changed)


def _overlaid(containers: tuple[Container, ...], stored: PodResources) -> tuple[Container, ...]:
    if all(
        stored.containers.get(container.name, container.resources) == container.resources for container in containers
    ):
        return containers
    return tuple(
        msgspec.structs.replace(container, resources=stored.containers.get(container.name, container.resources))
        for container in containers
    )
