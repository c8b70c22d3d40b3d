"""Defaults of services and of the endpoints behind them."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.core.v1.services.types import (
    ClientIPConfig,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    LoadBalancerIngress,
    Service,
    ServicePort,
    ServiceSpec,
    ServiceStatus,
    SessionAffinityConfig,
)
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, fill, inside

AFFINITY_SECONDS = 10800
EXTERNAL_NAME, CLUSTER_IP, NODE_PORT, LOAD_BALANCER = "ExternalName", "ClusterIP", "NodePort", "LoadBalancer"


def reachable_from_outside(spec: ServiceSpec) -> bool:
    return spec.type in (NODE_PORT, LOAD_BALANCER) or (spec.type == CLUSTER_IP and bool(spec.external_ips))


def _service(service: Service) -> Service:
    service = inside(service, spec=_spec)
    return inside(service, status=_status) if service.spec.type == LOAD_BALANCER else service


def _status(status: ServiceStatus) -> ServiceStatus:
    return inside(status, load_balancer=lambda balancer: inside(balancer, ingress=_ingress))


def _ingress(point: LoadBalancerIngress) -> LoadBalancerIngress:
    return fill(point, ip_mode="VIP") if point.ip else point


def _spec(spec: ServiceSpec) -> ServiceSpec:
    spec = fill(spec, session_affinity="None", type=CLUSTER_IP)
    if spec.session_affinity == "None":
        spec = change(spec, session_affinity_config=None)
    elif spec.session_affinity == "ClientIP":
        spec = fill(spec, session_affinity_config=SessionAffinityConfig())
        spec = inside(spec, session_affinity_config=_affinity)
    if reachable_from_outside(spec):
        spec = fill(spec, external_traffic_policy="Cluster")
    if spec.type in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER):
        spec = fill(spec, internal_traffic_policy="Cluster")
    if spec.type == LOAD_BALANCER:
        spec = fill(spec, allocate_load_balancer_node_ports=True)
    return inside(spec, ports=_port)


def _affinity(config: SessionAffinityConfig) -> SessionAffinityConfig:
    filled = fill(config, client_ip=ClientIPConfig())
    return inside(filled, client_ip=lambda client: fill(client, timeout_seconds=AFFINITY_SECONDS))


def _port(port: ServicePort) -> ServicePort:
    port = fill(port, protocol="TCP")
    return change(port, target_port=port.port) if port.target_port in (0, "") else port


def _endpoints(endpoints: Endpoints) -> Endpoints:
    return inside(endpoints, subsets=_subset)


def _subset(subset: EndpointSubset) -> EndpointSubset:
    return inside(subset, ports=_endpoint_port)


def _endpoint_port(port: EndpointPort) -> EndpointPort:
    return fill(port, protocol="TCP")


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {Service: _service, Endpoints: _endpoints}
