"""Services and the endpoints behind them."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.base import ATOMIC, IntOrString, Object, Struct, always, keyed
from podfit.api.meta.v1.types import Condition, ObjectMeta


class ServicePort(Struct):
    name: str = ""
    app_protocol: str | None = None
    node_port: int = 0
    port: int = always(default=0)
    protocol: str = ""
    target_port: IntOrString = always(default=0)


class ClientIPConfig(Struct):
    timeout_seconds: int | None = None


class SessionAffinityConfig(Struct):
    client_ip: ClientIPConfig | None = None


class ServiceSpec(Struct):
    type: str = ""
    allocate_load_balancer_node_ports: bool | None = None
    cluster_ip: str = ""
    cluster_ips: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = ()
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: int = 0
    internal_traffic_policy: str | None = None
    ip_families: tuple[str, ...] = ()
    ip_family_policy: str | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str = ""
    load_balancer_source_ranges: tuple[str, ...] = ()
    ports: Annotated[tuple[ServicePort, ...], keyed("port", "protocol", protocol="TCP")] = ()
    publish_not_ready_addresses: bool = False
    selector: Annotated[dict[str, str], ATOMIC] = field(default_factory=dict)
    session_affinity: str = ""
    session_affinity_config: SessionAffinityConfig | None = None
    traffic_distribution: str | None = None


class PortStatus(Struct):
    error: str | None = None
    port: int = always(default=0)
    protocol: str = always(default="")


class LoadBalancerIngress(Struct):
    hostname: str = ""
    ip: str = ""
    ip_mode: str | None = None
    ports: tuple[PortStatus, ...] = ()


class LoadBalancerStatus(Struct):
    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Struct):
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    load_balancer: LoadBalancerStatus = always(default=LoadBalancerStatus())


class Service(Object):
    kind: str = always(default="Service")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: ServiceSpec = always(default=ServiceSpec())
    status: ServiceStatus = always(default=ServiceStatus())


class EndpointAddress(Struct):
    hostname: str = ""
    ip: str = always(default="")
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Struct):
    name: str = ""
    app_protocol: str | None = None
    port: int = always(default=0)
    protocol: str = ""


class EndpointSubset(Struct):
    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(Object):
    kind: str = always(default="Endpoints")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    subsets: tuple[EndpointSubset, ...] = ()
