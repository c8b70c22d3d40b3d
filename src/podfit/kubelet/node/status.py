"""Generates the node's status: addresses, capacity, conditions, images."""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.nodes.types import (
    ContainerImage,
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeRuntimeHandler,
    NodeRuntimeHandlerFeatures,
    NodeStatus,
)
from podfit.api.meta.base import ResourceList
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.features import FeatureGates
from podfit.decide.node.simulated import SIMULATED
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.node.machine import architecture, system_info
from podfit.kubelet.runtime.types import Image, Version

DECLARED = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
)
"""Without the first one upstream's API server speaks SPDY to a kubelet, which this one does not understand."""
MAX_IMAGES = 50

_CALM = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}
UNRESPONSIVE = "UnresponsiveDisk"
DISK_HANGS, DISK_ANSWERS = "DiskDoesNotAnswer", "DiskAnswers"

_PRESSED = {
    "MemoryPressure": ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    "DiskPressure": ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    "PIDPressure": ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
}


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """`runtime` is why no container can be started now; empty when they can. `pressure` are the names of conditions.
    `disk` tells which files cannot be written because the disk does not answer; empty when it does.
    """

    runtime: str = ""
    disk: str = ""
    pressure: tuple[str, ...] = ()
    shutting_down: bool = False


def node_object(config: KubeletConfig, status: NodeStatus) -> Node:
    return Node(
        metadata=ObjectMeta(name=config.name, labels=node_labels(config), annotations=node_annotations(config)),
        status=status,
    )


def node_labels(config: KubeletConfig) -> dict[str, str]:
    own = {
        "beta.kubernetes.io/arch": architecture(),
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture(),
        "kubernetes.io/hostname": config.name,
        "kubernetes.io/os": "linux",
    }
    return {**own, **config.labels, **({SIMULATED: "true"} if config.simulated else {})}


def node_annotations(config: KubeletConfig) -> dict[str, str]:
    told = {SIMULATED: "containers of this node are simulated by podfit: nothing runs"} if config.simulated else {}
    return {**told, **config.annotations}


def node_status(
    config: KubeletConfig,
    *,
    gates: FeatureGates,
    version: Version | None,
    images: Iterable[Image],
    health: Health,
    now: str,
    previous: Mapping[str, NodeCondition],
    extended: ResourceList,
    lent: ResourceList,
    recursive_read_only: bool,
) -> NodeStatus:
    """`now` is RFC 3339; `previous` conditions by type keep their transition times. `version` None = not known now."""
    name = f"{version.runtime_name}://{version.runtime_version}" if version is not None else ""
    handler = NodeRuntimeHandlerFeatures(recursive_read_only_mounts=recursive_read_only, user_namespaces=False)
    return NodeStatus(
        capacity={**config.capacity, **lent},
        allocatable={**extended, **config.allocatable, **lent},
        conditions=tuple(_conditions(health, now, previous)),
        addresses=(
            NodeAddress(type="InternalIP", address=config.host_ip),
            NodeAddress(type="Hostname", address=config.name),
        ),
        daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=config.port)),
        node_info=system_info(name),
        images=_images(images),
        runtime_handlers=(NodeRuntimeHandler(features=handler),),
        declared_features=declared_features(gates),
    )


def declared_features(gates: FeatureGates) -> tuple[str, ...]:
    """What the API server and the scheduler may count on, sorted."""
    if not gates["NodeDeclaredFeatures"]:
        return ()
    return tuple(sorted(name for name in DECLARED if gates[name]))


def _conditions(health: Health, now: str, previous: Mapping[str, NodeCondition]) -> Iterable[NodeCondition]:
    problem = "; ".join(filter(None, (health.runtime, "node is shutting down" if health.shutting_down else "")))
    ready = ("Ready", "False", "KubeletNotReady", problem)
    rows = [
        *_disk(health, previous),
        *(
            (kind, "True", *_PRESSED[kind]) if kind in health.pressure else (kind, "False", *_CALM[kind])
            for kind in _CALM
        ),
        ready if problem else ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    for kind, status, reason, message in rows:
        before = previous.get(kind)
        since = before.last_transition_time if before is not None and before.status == status else now
        yield NodeCondition(
            type=kind,
            status=status,
            reason=reason,
            message=message,
            last_heartbeat_time=now,
            last_transition_time=since,
        )


def _disk(health: Health, previous: Mapping[str, NodeCondition]) -> Iterable[tuple[str, str, str, str]]:
    """Podfit's own, and only of a node whose disk has hung."""
    if health.disk:
        yield UNRESPONSIVE, "True", DISK_HANGS, health.disk
    elif UNRESPONSIVE in previous:
        yield UNRESPONSIVE, "False", DISK_ANSWERS, "the disk answers"


def _images(images: Iterable[Image]) -> tuple[ContainerImage, ...]:
    largest = sorted(images, key=lambda image: (-image.size, image.id))[:MAX_IMAGES]
    return tuple(
        ContainerImage(names=(*image.digests, *image.tags), size_bytes=image.size)
        for image in largest
        if image.digests or image.tags
    )
