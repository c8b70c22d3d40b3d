"""The node: capacity, conditions, declared features."""

from typing import Annotated

from msgspec import field

from podfit.api.meta.base import SET, Object, ResourceList, Struct, Time, always, keyed
from podfit.api.meta.v1.types import ObjectMeta


class ConfigMapNodeConfigSource(Struct):
    name: str = always(default="")
    kubelet_config_key: str = always(default="")
    namespace: str = always(default="")
    resource_version: str = ""
    uid: str = ""


class NodeConfigSource(Struct):
    config_map: ConfigMapNodeConfigSource | None = None


class Taint(Struct):
    key: str = always(default="")
    effect: str = always(default="")
    time_added: Time | None = None
    value: str = ""


class NodeSpec(Struct):
    config_source: NodeConfigSource | None = None
    external_id: str = ""
    pod_cidr: str = ""
    pod_cidrs: Annotated[tuple[str, ...], SET] = ()
    provider_id: str = ""
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class AttachedVolume(Struct):
    name: str = always(default="")
    device_path: str = always(default="")


class ContainerImage(Struct):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Struct):
    type: str = always(default="")
    address: str = always(default="")


class NodeCondition(Struct):
    type: str = always(default="")
    last_heartbeat_time: Time | None = always(default=None)
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")


class NodeConfigStatus(Struct):
    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str = ""
    last_known_good: NodeConfigSource | None = None


class DaemonEndpoint(Struct):
    port: int = always(default=0, name="Port")


class NodeDaemonEndpoints(Struct):
    kubelet_endpoint: DaemonEndpoint = always(default=DaemonEndpoint())


class NodeFeatures(Struct):
    supplemental_groups_policy: bool | None = None


class NodeRuntimeHandlerFeatures(Struct):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Struct):
    name: str = ""
    features: NodeRuntimeHandlerFeatures | None = None


class NodeSwapStatus(Struct):
    capacity: int = 0


class NodeSystemInfo(Struct):
    architecture: str = always(default="")
    boot_id: str = always(default="")
    container_runtime_version: str = always(default="")
    kernel_version: str = always(default="")
    kube_proxy_version: str = always(default="")
    kubelet_version: str = always(default="")
    machine_id: str = always(default="")
    operating_system: str = always(default="")
    os_image: str = always(default="")
    swap: NodeSwapStatus | None = None
    system_uuid: str = always(default="")


class NodeStatus(Struct):
    addresses: Annotated[tuple[NodeAddress, ...], keyed("type")] = ()
    allocatable: ResourceList = field(default_factory=dict)
    capacity: ResourceList = field(default_factory=dict)
    conditions: Annotated[tuple[NodeCondition, ...], keyed("type")] = ()
    config: NodeConfigStatus | None = None
    daemon_endpoints: NodeDaemonEndpoints = always(default=NodeDaemonEndpoints())
    declared_features: tuple[str, ...] = ()
    features: NodeFeatures | None = None
    images: tuple[ContainerImage, ...] = ()
    node_info: NodeSystemInfo = always(default=NodeSystemInfo())
    phase: str = ""
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


class Node(Object):
    kind: str = always(default="Node")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: NodeSpec = always(default=NodeSpec())
    status: NodeStatus = always(default=NodeStatus())
