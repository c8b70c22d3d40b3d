"""Columns of `kubectl get` for services and of the endpoints behind them."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Protocol

from podfit.api.core.v1.services.types import Endpoints, Service, ServicePort, ServiceSpec
from podfit.api.meta.columns import AGE, NAME, NONE, age, wide
from podfit.api.meta.resource_info import Column

_SHOWN = 3

SERVICE = (
    NAME,
    Column("Type", description="How the service is reached."),
    Column("Cluster-IP", description="Its address inside the cluster."),
    Column("External-IP", description="Its addresses from outside."),
    Column("Port(s)", description="Its ports, with those on the nodes."),
    AGE,
    wide("Selector", "Labels of the pods behind it."),
)


def service_row(service: Service, now: str) -> list[Any]:
    spec = service.spec
    return [
        service.metadata.name,
        spec.type,
        spec.cluster_ips[0] if spec.cluster_ips else NONE,
        _external(service),
        ",".join(map(_service_port, spec.ports)) or NONE,
        age(service, now),
        labels_text(spec.selector),
    ]


def _external(service: Service) -> str:
    spec: ServiceSpec = service.spec
    if spec.type == "ExternalName":
        return spec.external_name
    given = ",".join(spec.external_ips)
    if spec.type != "LoadBalancer":
        return given or NONE
    return ",".join(filter(None, (balanced(service.status.load_balancer.ingress), given))) or "<pending>"


class Addressed(Protocol):
    """A place where a load balancer takes traffic: of a Service or of an Ingress."""

    @property
    def ip(self) -> str: ...

    @property
    def hostname(self) -> str: ...


def balanced(points: Sequence[Addressed]) -> str:
    """Where load balancers take traffic, each place once; never shortened, as only clients know their width."""
    return ",".join(sorted({point.ip or point.hostname for point in points} - {""}))


def _service_port(port: ServicePort) -> str:
    on_nodes = f":{port.node_port}" if port.node_port > 0 else ""
    return f"{port.port}{on_nodes}/{port.protocol}"


def labels_text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


ENDPOINTS = (NAME, Column("Endpoints", description="The addresses and ports that are ready."), AGE)


def endpoints_row(endpoints: Endpoints, now: str) -> list[Any]:
    found = [
        _joined(address.ip, port.port) if port else address.ip
        for subset in endpoints.subsets
        for port in subset.ports or (None,)
        for address in subset.addresses
    ]
    none = "" if endpoints.subsets else NONE  # there are subsets, but nothing in them is ready
    return [endpoints.metadata.name, shortened(found) or none, age(endpoints, now)]


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ip_address(ip).version == 6 else f"{ip}:{port}"


def shortened(values: Sequence[str]) -> str:
    """The first three, and how many more there are."""
    text = ",".join(values[:_SHOWN])
    return f"{text} + {len(values) - _SHOWN} more..." if len(values) > _SHOWN else text
