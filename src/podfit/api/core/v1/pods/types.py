"""The pod: the object that a resize changes."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.pods.affinity import Affinity, Toleration, TopologySpreadConstraint
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import Container, EphemeralContainer, ResourceRequirements
from podfit.api.core.v1.pods.security import PodSecurityContext
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.core.v1.references import LocalObjectReference, ObjectReference
from podfit.api.meta.base import ATOMIC, SET_REPLACED, Object, ResourceList, Struct, Time, always, keyed, merged
from podfit.api.meta.v1.types import ObjectMeta

MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a mirror pod, with which a kubelet shows a static pod."""


class HostAlias(Struct):
    hostnames: tuple[str, ...] = ()
    ip: str = always(default="")


class PodDNSConfigOption(Struct):
    name: str = ""
    value: str = ""


class PodDNSConfig(Struct):
    nameservers: tuple[str, ...] = ()
    options: tuple[PodDNSConfigOption, ...] = ()
    searches: tuple[str, ...] = ()


class PodOS(Struct):
    name: str = always(default="")


class PodReadinessGate(Struct):
    condition_type: str = always(default="")


class PodResourceClaim(Struct):
    name: str = always(default="")
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSchedulingGate(Struct):
    name: str = always(default="")


class PodSchedulingGroup(Struct):
    pod_group_name: str = ""


GATED = "Scheduling is blocked due to non-empty scheduling gates"


class PodSpec(Struct):
    active_deadline_seconds: int | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    containers: Annotated[tuple[Container, ...], keyed("name")] = ()
    dns_config: PodDNSConfig | None = None
    dns_policy: str = ""
    enable_service_links: bool | None = None
    ephemeral_containers: Annotated[tuple[EphemeralContainer, ...], keyed("name")] = ()
    host_aliases: Annotated[tuple[HostAlias, ...], keyed("ip")] = ()
    host_ipc: bool = False
    host_network: bool = False
    host_pid: bool = False
    host_users: bool | None = None
    hostname: str = ""
    hostname_override: str | None = None
    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], keyed("name")] = ()
    init_containers: Annotated[tuple[Container, ...], keyed("name")] = ()
    node_name: str = ""
    node_selector: Annotated[dict[str, str], ATOMIC] = field(default_factory=dict)
    os: PodOS | None = None
    overhead: ResourceList = field(default_factory=dict)
    preemption_policy: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    resource_claims: Annotated[tuple[PodResourceClaim, ...], keyed("name", retain_keys=True)] = ()
    resources: ResourceRequirements | None = None
    restart_policy: str = ""
    runtime_class_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: Annotated[tuple[PodSchedulingGate, ...], keyed("name")] = ()
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str = ""
    service_account_name: str = ""
    set_hostname_as_fqdn: bool | None = None
    share_process_namespace: bool | None = None
    subdomain: str = ""
    termination_grace_period_seconds: int | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: Annotated[
        tuple[TopologySpreadConstraint, ...], keyed("topologyKey", "whenUnsatisfiable")
    ] = ()
    volumes: Annotated[tuple[Volume, ...], keyed("name", retain_keys=True)] = ()


class HostIP(Struct):
    ip: str = always(default="")


class NodeAllocatableResourceClaimStatus(Struct):
    containers: Annotated[tuple[str, ...], SET_REPLACED] = ()
    resource_claim_name: str = always(default="")
    resources: ResourceList = field(default_factory=dict)


class PodCondition(Struct):
    type: str = always(default="")
    last_probe_time: Time | None = always(default=None)
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    observed_generation: int = 0
    reason: str = ""
    status: str = always(default="")


class ContainerExtendedResourceRequest(Struct):
    container_name: str = always(default="")
    request_name: str = always(default="")
    resource_name: str = always(default="")


class PodExtendedResourceClaimStatus(Struct):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = always(default="")


class PodIP(Struct):
    ip: str = always(default="")


class PodResourceClaimStatus(Struct):
    name: str = always(default="")
    resource_claim_name: str = ""


class PodStatus(Struct):
    allocated_resources: ResourceList = field(default_factory=dict)
    conditions: Annotated[tuple[PodCondition, ...], keyed("type")] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    host_ip: str = ""
    host_ips: Annotated[tuple[HostIP, ...], merged("ip")] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    message: str = ""
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    nominated_node_name: str = ""
    observed_generation: int = 0
    phase: str = ""
    pod_ip: str = ""
    pod_ips: Annotated[tuple[PodIP, ...], keyed("ip")] = ()
    qos_class: str = ""
    reason: str = ""
    resize: str = ""
    resource_claim_statuses: Annotated[tuple[PodResourceClaimStatus, ...], keyed("name", retain_keys=True)] = ()
    resources: ResourceRequirements | None = None
    start_time: Time | None = None


class Pod(Object):
    kind: str = always(default="Pod")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: PodSpec = always(default=PodSpec())
    status: PodStatus = always(default=PodStatus())


class Binding(Object):
    kind: str = always(default="Binding")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    target: ObjectReference = always(default=ObjectReference())
