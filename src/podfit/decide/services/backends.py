"""Which endpoints answer for each port of a Service.

ready ones, else those that are ending and still serve         upstream's order
internalTrafficPolicy, externalTrafficPolicy Local             only those of this node; without any nobody answers
headless, ExternalName                                         have no port here: names lead to them
externalIPs, addresses of load balancers                       are not followed: whoever makes a Service could catch
                                                               traffic that is meant for somebody else
"""

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv4Network

import msgspec

from podfit.api.core.v1.services.types import Service, ServicePort
from podfit.api.discovery.v1.types import Endpoint, EndpointSlice

AFFINITY_SECONDS = 10800
LOCAL = "Local"
MOST_BACKENDS = 5000
"""Of one port, by their addresses the first: each change of one of them is a rule that names all."""


class ProxyPlace(msgspec.Struct, frozen=True):
    """The node of the proxy. Addresses of pods are in `cluster`; those of its own pods in `pods`, whose first is the
    gateway; `node_address` is the node's own.
    """

    node: str
    node_address: str
    cluster: str
    pods: str


class Backend(msgspec.Struct, frozen=True, order=True):
    """Where packets of a connection go."""

    address: str
    port: int


class Reached(msgspec.Struct, frozen=True):
    """Who answers on one way to a port. Without `backends` it is `dropped`, where some are elsewhere, or refused."""

    backends: tuple[Backend, ...] = ()
    dropped: bool = False


class PortBackends(msgspec.Struct, frozen=True):
    """One port of a Service. `affinity` is for how many seconds a client stays with its backend; 0 is not at all."""

    name: str
    protocol: str
    port: int
    node_port: int
    internal: Reached
    external: Reached
    masquerade: bool
    affinity: int


class ServiceBackends(msgspec.Struct, frozen=True):
    """A Service that has an address; `name` is NAMESPACE/NAME."""

    name: str
    address: str
    ports: tuple[PortBackends, ...]


def service_backends(service: Service, slices: Iterable[EndpointSlice], place: ProxyPlace) -> ServiceBackends | None:
    """None for a Service that nobody's packets are led to here. `slices` are the Service's own."""
    spec = service.spec
    address = next((ip for ip in spec.cluster_ips or (spec.cluster_ip,) if _is_address(ip)), "")
    if not address or spec.type == "ExternalName":
        return None
    known = [piece for piece in slices if piece.address_type == "IPv4"]
    local_inside, local_outside = spec.internal_traffic_policy == LOCAL, spec.external_traffic_policy == LOCAL
    published = spec.type in ("NodePort", "LoadBalancer")
    ports = []
    for port in spec.ports:
        found = list(_endpoints(known, port))
        outside = [one for one in found if published and _may_be_published(one[1], place)]
        ports.append(
            PortBackends(
                name=port.name,
                protocol=(port.protocol or "TCP").lower(),
                port=port.port,
                node_port=port.node_port if published else 0,
                internal=_reached(found, place.node if local_inside else ""),
                external=_reached(outside, place.node if local_outside else ""),
                masquerade=not local_outside,
                affinity=_affinity(service),
            )
        )
    meta = service.metadata
    return ServiceBackends(f"{meta.namespace}/{meta.name}", address, tuple(ports))


def _affinity(service: Service) -> int:
    if service.spec.session_affinity != "ClientIP":
        return 0
    config = service.spec.session_affinity_config
    wanted = config.client_ip.timeout_seconds if config is not None and config.client_ip is not None else None
    return wanted or AFFINITY_SECONDS


def _endpoints(slices: Iterable[EndpointSlice], port: ServicePort) -> Iterator[tuple[Endpoint, Backend]]:
    for piece in slices:
        numbers = [
            one.port
            for one in piece.ports or ()
            if (one.name or "") == port.name and (one.protocol or "TCP") == (port.protocol or "TCP") and one.port
        ]
        for endpoint in piece.endpoints or ():
            for number in numbers:
                yield from ((endpoint, Backend(ip, number)) for ip in endpoint.addresses[:1] if may_answer(ip))


def _reached(found: list[tuple[Endpoint, Backend]], node: str) -> Reached:
    """`node` is the only one whose endpoints count; empty for all."""
    usable = _usable(found)
    here = [(endpoint, backend) for endpoint, backend in found if not node or endpoint.node_name == node]
    chosen = _usable(here)
    return Reached(
        tuple(sorted({backend for _, backend in chosen})[:MOST_BACKENDS]), dropped=bool(usable) and not chosen
    )


def _usable(found: list[tuple[Endpoint, Backend]]) -> list[tuple[Endpoint, Backend]]:
    ready = [one for one in found if one[0].conditions.ready is not False]
    return ready or [one for one in found if one[0].conditions.serving and one[0].conditions.terminating]


def may_answer(text: str) -> bool:
    """Endpoints are written by whoever may: none leads to loopback, to a link, or to many at once."""
    found = _octets(text)
    if found is None or text in ("0.0.0.0", "255.255.255.255"):
        return False
    return found[0] != 127 and not 224 <= found[0] <= 239 and found[:2] != [169, 254]


def _octets(text: str) -> list[int] | None:
    """None for what is no address of IPv4. `ipaddress` takes ten times as long, and there may be many."""
    parts = text.split(".")
    if len(parts) != 4 or not text.isascii() or any(not part.isdigit() or len(part) > 3 for part in parts):
        return None
    numbers = [int(part) for part in parts]
    plain = all(number < 256 and str(number) == part for number, part in zip(numbers, parts, strict=True))
    return numbers if plain else None


def _may_be_published(backend: Backend, place: ProxyPlace) -> bool:
    """A NodePort leads to pods, also to those on the node's own network: to no other machine, in whose eyes the client
    would be this one, and not to the gateway's address, where the API server listens for pods.
    """
    found = IPv4Address(backend.address)
    if place.pods and found == IPv4Network(place.pods)[1]:
        return False
    return backend.address == place.node_address or (bool(place.cluster) and found in IPv4Network(place.cluster))


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


class StaleFlow(msgspec.Struct, frozen=True, order=True):
    """UDP packets that still go where nobody answers: connections to this `address` and `port` (of a node when the
    address is empty), that were led to `backend`; empty: that were led nowhere.
    """

    address: str
    port: int
    backend: str = ""


def stale_flows(before: Mapping[str, ServiceBackends], after: Mapping[str, ServiceBackends]) -> list[StaleFlow]:
    """Flows that lead to who answers no more; Services by name, as they were and as they are now."""
    stale = set[StaleFlow]()
    now = {(name, port.name, port.port): port for name, service in after.items() for port in service.ports}
    then = {(name, port.name, port.port): port for name, service in before.items() for port in service.ports}
    for name, service in {**before, **after}.items():
        for port in service.ports:
            if port.protocol == "udp":
                key = (name, port.name, port.port)
                stale |= set(_of_port(service.address, port, then.get(key), now.get(key)))
    return sorted(stale)


def _of_port(
    address: str, port: PortBackends, before: PortBackends | None, after: PortBackends | None
) -> Iterator[StaleFlow]:
    places = [(address, port.port), *([("", port.node_port)] if port.node_port else [])]
    old = {backend.address for backend in before.internal.backends} if before is not None else set[str]()
    new = {backend.address for backend in after.internal.backends} if after is not None else set[str]()
    for where, number in places:
        yield from (StaleFlow(where, number, gone) for gone in old - new)
        if new and not old:
            yield StaleFlow(where, number)
