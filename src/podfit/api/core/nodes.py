"""The node: capacity, conditions, declared features."""

from typing import Annotated

from msgspec import field

from podfit.api.base import always, keyed, Object, ResourceList, SET, Struct, Time
from podfit.api.meta import ObjectMeta


class ConfigMapNodeConfigSource(Struct):
    name: str = always("")
    kubelet_config_key: str = always("")
    namespace: str = always("")
    resource_version: str = ""
    uid: str = ""


class NodeConfigSource(Struct):
    config_map: ConfigMapNodeConfigSource | None = None


class Taint(Struct):
    key: str = always("")
    effect: str = always("")
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
    name: str = always("")
    device_path: str = always("")


class ContainerImage(Struct):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Struct):
    type: str = always("")
    address: str = always("")


class NodeCondition(Struct):
    type: str = always("")
    last_heartbeat_time: Time | None = always(None)
    last_transition_time: Time | None = always(None)
    message: str = ""
    reason: str = ""
    status: str = always("")


class NodeConfigStatus(Struct):
    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str = ""
    last_known_good: NodeConfigSource | None = None


class DaemonEndpoint(Struct):
    port: int = always(0, name="Port")


class NodeDaemonEndpoints(Struct):
    kubelet_endpoint: DaemonEndpoint = always(DaemonEndpoint())


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
    architecture: str = always("")
    boot_id: str = always("")
    container_runtime_version: str = always("")
    kernel_version: str = always("")
    kube_proxy_version: str = always("")
    kubelet_version: str = always("")
    machine_id: str = always("")
    operating_system: str = always("")
    os_image: str = always("")
    swap: NodeSwapStatus | None = None
    system_uuid: str = always("")


class NodeStatus(Struct):
    addresses: Annotated[tuple[NodeAddress, ...], keyed("type")] = ()
    allocatable: ResourceList = field(default_factory=dict)
    capacity: ResourceList = field(default_factory=dict)
    conditions: Annotated[tuple[NodeCondition, ...], keyed("type")] = ()
    config: NodeConfigStatus | None = None
    daemon_endpoints: NodeDaemonEndpoints = always(NodeDaemonEndpoints())
    declared_features: tuple[str, ...] = ()
    features: NodeFeatures | None = None
    images: tuple[ContainerImage, ...] = ()
    node_info: NodeSystemInfo = always(NodeSystemInfo())
    phase: str = ""
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


class Node(Object):
    kind: str = always("Node")
    api_version: str = always("v1")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: NodeSpec = always(NodeSpec())
    status: NodeStatus = always(NodeStatus())
