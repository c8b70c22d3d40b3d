"""Allocates a service's cluster IPs and node ports, and keeps them on updates.

An address or a node port belongs to one service at a time. Which ones a service needs follows from its type; what an
update does not mention stays, and what the new type has no use for is let go.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.services.address_validation import HEADLESS, is_headless, validate_addresses
from podfit.api.core.v1.services.defaults import EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT, reachable_from_outside
from podfit.api.core.v1.services.types import Service, ServicePort, ServiceSpec, ServiceStatus
from podfit.api.core.v1.services.validation import needs_health_check
from podfit.api.meta.defaulting import change
from podfit.api.meta.validation.addresses import family, parsed
from podfit.core.fields import FieldError, invalid
from podfit.core.options import Option, Unit

_SINGLE, _REQUIRE, _PREFER = "SingleStack", "RequireDualStack", "PreferDualStack"
_OTHER = {"IPv4": "IPv6", "IPv6": "IPv4"}
_FEWEST = 8  # addresses; of fewer, nothing is left beside the network's own and those for the cluster itself


class BadRange(ValueError):
    """A text is not a range that services can have."""


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(text)
    except ValueError as error:
        several = ": one range, of one family" if "," in text else f": {error}"
        raise BadRange(f"{text!r}{several}") from None
    if network.num_addresses < _FEWEST:
        raise BadRange(f"{text!r}: must be at least {_FEWEST} IP addresses")
    return network


def _port_range(text: str) -> tuple[int, int]:
    """`30000-32767`, or `30000+2767` for as many more."""
    first, sign, second = text.partition("+" if "+" in text else "-")
    try:
        low = int(first)
        high = low if not sign else int(second) + (low if sign == "+" else 0)
    except ValueError:
        raise BadRange(f"{text!r} is not of the form 30000-32767") from None
    if not 0 < low <= high <= 65535:
        raise BadRange(f"{text!r}: from 1 to 65535, the lower one first")
    return low, high


class ServiceRanges(msgspec.Struct, frozen=True):
    """The addresses and node ports that services of this cluster get."""

    addresses: Annotated[
        IPv4Network | IPv6Network,
        Option("Addresses of services.", flag="service-cluster-ip-range", unit=Unit(name="network", read=_network)),
    ] = ip_network("10.96.0.0/12")
    ports: Annotated[
        tuple[int, int],
        Option(
            "Node ports of services.",
            flag="service-node-port-range",
            unit=Unit(name="range", read=_port_range, text=lambda ports: "{}-{}".format(*ports)),
        ),
    ] = (30000, 32767)
    """The first and the last."""

    @property
    def first_port(self) -> int:
        return self.ports[0]

    @property
    def last_port(self) -> int:
        return self.ports[1]

    @property
    def family(self) -> str:
        return f"IPv{self.addresses.version}"

    @property
    def size(self) -> int:
        """How many addresses there are to give: neither the network's own nor the last."""
        return int(self.addresses.num_addresses) - 2

    @property
    def static(self) -> int:
        """How many of the first are left for those who ask for one, as long as there are others."""
        return min(max(16, self.size // 16), 256, self.size)

    def address(self, number: int) -> str:
        return str(self.addresses[number + 1])

    def has_address(self, text: str) -> bool:
        found = parsed(text)
        if found is None or found not in self.addresses:
            return False
        return found not in (self.addresses.network_address, self.addresses.broadcast_address)

    def has_port(self, port: int) -> bool:
        return self.first_port <= port <= self.last_port


class Allocated(msgspec.Struct, frozen=True):
    """What is a service's alone."""

    addresses: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()

    def __sub__(self, other: "Allocated") -> "Allocated":
        return Allocated(self.addresses - other.addresses, self.ports - other.ports)


def allocated_to(service: Service | None) -> Allocated:
    if service is None:
        return Allocated()
    spec = service.spec
    addresses = () if spec.type == EXTERNAL_NAME or is_headless(spec) else spec.cluster_ips
    ports = [port.node_port for port in spec.ports] if _has_node_ports(spec) else []
    return Allocated(
        frozenset(str(ip_address(text)) for text in addresses if parsed(text)),
        frozenset(filter(None, [*ports, spec.health_check_node_port])),
    )


def needs_address(spec: ServiceSpec) -> bool:
    return spec.type != EXTERNAL_NAME and not is_headless(spec) and not spec.cluster_ips


def _has_address(spec: ServiceSpec) -> bool:
    return spec.type != EXTERNAL_NAME


def _has_node_ports(spec: ServiceSpec) -> bool:
    return spec.type in (NODE_PORT, LOAD_BALANCER)


def wants_node_ports(spec: ServiceSpec) -> bool:
    """Whether ports that name none are given one."""
    return spec.type == NODE_PORT or (
        spec.type == LOAD_BALANCER and spec.allocate_load_balancer_node_ports is not False
    )


def created(service: Service) -> Service:
    """A new service as it is looked at: `clusterIP` is the first of `clusterIPs`, and nobody has seen to it yet."""
    spec = service.spec
    if spec.cluster_ip and not spec.cluster_ips:
        spec = replace(spec, cluster_ips=(spec.cluster_ip,))
    return replace(service, spec=spec, status=ServiceStatus())


def updated(new: Service, old: Service) -> Service:
    """What an update makes of a service."""
    spec = _let_go(_normal(new.spec, old.spec), old.spec)
    return replace(new, spec=_carried(spec, old.spec), status=old.status)


def _normal(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """A client that knows only `clusterIP` means both by it."""
    if new.cluster_ip == old.cluster_ip or new.cluster_ips != old.cluster_ips:
        return new
    return replace(new, cluster_ips=(new.cluster_ip,) if new.cluster_ip else ())


def _let_go(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """Without what the old type gave and the new one has no use for, unless the client says otherwise."""
    if _has_address(old) and not _has_address(new):
        if (new.cluster_ip, new.cluster_ips) == (old.cluster_ip, old.cluster_ips):
            new = change(new, cluster_ip="", cluster_ips=())
        if new.ip_families == old.ip_families:
            new = change(new, ip_families=())
        if new.ip_family_policy == old.ip_family_policy:
            new = change(new, ip_family_policy=None)
    if _has_node_ports(old) and not _has_node_ports(new) and _node_ports(new) == _node_ports(old):
        new = change(new, ports=tuple(change(port, node_port=0) for port in new.ports))
    if needs_health_check(old) and not needs_health_check(new):
        new = _without(new, old, "health_check_node_port", 0)
    if old.type == LOAD_BALANCER != new.type:
        new = _without(new, old, "allocate_load_balancer_node_ports", None)
        new = _without(new, old, "load_balancer_class", None)
    if reachable_from_outside(old) and not reachable_from_outside(new):
        new = _without(new, old, "external_traffic_policy", "")
    return new


def _node_ports(spec: ServiceSpec) -> set[int]:
    return {port.node_port for port in spec.ports if port.node_port}


def _without(new: ServiceSpec, old: ServiceSpec, name: str, empty: object) -> ServiceSpec:
    return change(new, **{name: empty}) if getattr(new, name) == getattr(old, name) else new


def _carried(new: ServiceSpec, old: ServiceSpec) -> ServiceSpec:
    """What was given before and is not mentioned stays."""
    if _has_address(new) and _has_address(old):
        if not new.cluster_ip:
            new = change(new, cluster_ip=old.cluster_ip)
        if not new.cluster_ips and new.cluster_ip == old.cluster_ip:
            new = change(new, cluster_ips=old.cluster_ips)
        if not new.ip_families:
            new = change(new, ip_families=old.ip_families)
        if new.ip_family_policy is None:
            new = change(new, ip_family_policy=old.ip_family_policy)
    if _has_node_ports(new) and _has_node_ports(old):
        new = change(new, ports=_ports_carried(new, old))
    if needs_health_check(new) and needs_health_check(old) and not new.health_check_node_port:
        new = change(new, health_check_node_port=old.health_check_node_port)
    return new


def _ports_carried(new: ServiceSpec, old: ServiceSpec) -> tuple[ServicePort, ...]:
    """Node ports stay with protocol and port, each given away once."""
    before = {(port.protocol, port.port): port.node_port for port in old.ports}
    used = _node_ports(new)
    ports = []
    for port in new.ports:
        number = before.get((port.protocol, port.port), 0)
        if not port.node_port and number and number not in used:
            port = replace(port, node_port=number)
        ports.append(port)
    return tuple(ports) if any(one is not other for one, other in zip(ports, new.ports, strict=True)) else new.ports


def with_families(service: Service, ranges: ServiceRanges) -> Service:
    """The service with the families and the policy that it does not say; what contradicts itself stays for
    `family_errors`."""
    spec = service.spec
    if spec.type == EXTERNAL_NAME or validate_addresses(service):
        return service
    said = tuple(family(text) for text in spec.cluster_ips if text != HEADLESS)
    families = spec.ip_families or said or (ranges.family,)
    alone = is_headless(spec) and not spec.selector
    policy = spec.ip_family_policy
    if policy is None:
        policy = _REQUIRE if alone or len(families) > 1 or len(said) > 1 else _SINGLE
    if alone and policy != _SINGLE and len(families) == 1:
        families = (*families, _OTHER[families[0]])
    return replace(service, spec=change(spec, ip_families=families, ip_family_policy=policy))


def family_errors(service: Service, ranges: ServiceRanges) -> list[FieldError]:
    """Why a service cannot have its families here: this cluster has one."""
    spec = service.spec
    if spec.type == EXTERNAL_NAME or (is_headless(spec) and not spec.selector):
        return []
    policy, path = spec.ip_family_policy, "spec.ipFamilyPolicy"
    errors = []
    if policy == _SINGLE:
        for name, values in (("clusterIPs", spec.cluster_ips), ("ipFamilies", spec.ip_families)):
            if len(values) > 1:
                text = f"must be RequireDualStack or PreferDualStack when multiple '{name}' are specified"
                errors.append(invalid(path, policy, text))
    if policy == _REQUIRE:
        errors.append(invalid(path, policy, "this cluster is not configured for dual-stack services"))
    if policy != _PREFER:
        errors += [
            invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
            for index, family in enumerate(spec.ip_families)
            if family != ranges.family
        ]
    return errors


def missing_node_ports(spec: ServiceSpec) -> Iterator[tuple[int, int]]:
    """Index of each port that is to be given a node port, and the one that it shares with the same port of another
    protocol; 0 where there is none yet."""
    if not wants_node_ports(spec):
        return
    for index, port in enumerate(spec.ports):
        if not port.node_port:
            shared = next(
                (
                    service_port.node_port
                    for service_port in spec.ports
                    if service_port.port == port.port and service_port.node_port
                ),
                0,
            )
            yield index, shared
