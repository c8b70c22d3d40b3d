"""The rules of one Service, and of pods that have ports of their node, as parts of a table."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address

import msgspec

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.services.backends import Backend, PortBackends, Reached, ServiceBackends

MASQUERADE = "0x00400000"
"""The mark of a packet whose answer has to come back over this machine; cleared as soon as it is served."""
MOST_CLIENTS, CLIENTS, LEAST_CLIENTS = 8192, 131072, 64
"""How many clients are remembered with a backend: of so many of the whole port its part, within these bounds. The
kernel takes the room of a set when it is made, and 5 ms for one of 65536.
"""
MOST_STAYING = 1000
"""Backends of a port whose clients stay with theirs: a chain and a set for each. Beyond it they are not led to."""

SERVICE_IPS, NODE_PORTS, CLUSTER_IPS = "service-ips", "node-ports", "cluster-ips"
HOST_PORTS, HOST_IP_PORTS = "host-ports", "host-ip-ports"


class Chain(msgspec.Struct, frozen=True):
    rules: tuple[str, ...]
    comment: str = ""


class Parts(msgspec.Struct, frozen=True):
    """The parts of a table: chains and sets by name, elements of maps by the map and their key; in sets their value is
    empty."""

    chains: Mapping[str, Chain] = {}
    sets: Mapping[str, str] = {}
    elements: Mapping[tuple[str, str], str] = {}


def service_rules(service: ServiceBackends) -> Parts:
    chains, sets = dict[str, Chain](), dict[str, str]()
    elements: dict[tuple[str, str], str] = {(CLUSTER_IPS, service.address): ""}
    for port in service.ports:
        label = f"{service.name}:{port.name or port.port}/{port.protocol}"
        mark = _mark(service, port)
        if port.internal.backends or port.internal.dropped:
            name = f"service-{mark}"
            _way(chains, sets, name, label, port.internal, port)
            elements[SERVICE_IPS, f"{port.protocol} . {service.address} . {port.port}"] = f"goto {name}"
        if port.node_port and (port.external.backends or port.external.dropped):
            name = f"external-{mark}"
            _way(chains, sets, name, label, port.external, port, outside=True)
            elements[NODE_PORTS, f"{port.protocol} . {port.node_port}"] = f"goto {name}"
    return Parts(chains, sets, elements)


def _mark(service: ServiceBackends, port: PortBackends) -> str:
    """A name of a bounded length, of nothing that nft would read otherwise."""
    text = f"{service.name} {service.address} {port.protocol} {port.port}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _way(
    chains: dict[str, Chain],
    sets: dict[str, str],
    name: str,
    label: str,
    reached: Reached,
    port: PortBackends,
    *,
    outside: bool = False,
) -> None:
    first = [f"meta mark set meta mark | {MASQUERADE}"] if outside and port.masquerade else []
    if not reached.backends:
        chains[name] = Chain(("drop",), label)
    elif not port.affinity:
        chains[name] = Chain((*first, _one_of(reached.backends, port.protocol)), label)
    else:
        stays, choices, size = [], [], _clients(len(reached.backends))
        for backend in reached.backends[:MOST_STAYING]:
            own = f"{name}-{hashlib.sha256(str(backend).encode()).hexdigest()[:8]}"
            sets[own] = f"type ipv4_addr; size {size}; flags dynamic,timeout; timeout {port.affinity}s;"  # of clients
            rules = (f"update @{own} {{ ip saddr }}", _led_to(backend, port.protocol))
            chains[own] = Chain(rules, label)
            stays.append(f"ip saddr @{own} goto {own}")
            choices.append(f"goto {own}")
        numbered = ", ".join(f"{number} : {choice}" for number, choice in enumerate(choices))
        chains[name] = Chain((*first, *stays, f"numgen random mod {len(choices)} vmap {{ {numbered} }}"), label)


def _clients(backends: int) -> int:
    return max(LEAST_CLIENTS, min(MOST_CLIENTS, CLIENTS // backends))


def _one_of(backends: tuple[Backend, ...], protocol: str) -> str:
    if len(backends) == 1:
        return _led_to(backends[0], protocol)
    numbered = ", ".join(f"{number} : {one.address} . {one.port}" for number, one in enumerate(backends))
    return f"meta l4proto {protocol} dnat ip to numgen random mod {len(backends)} map {{ {numbered} }}"


def _led_to(backend: Backend, protocol: str) -> str:
    return f"meta l4proto {protocol} dnat to {backend.address}:{backend.port}"


def host_port_rules(pods: Iterable[Pod]) -> Parts:
    """`pods` are those of this node; the one that was made first has the port, should two say the same one."""
    elements = dict[tuple[str, str], str]()
    for pod in sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.uid)):
        for key, target in _host_ports(pod):
            elements.setdefault(key, target)
    return Parts(elements=elements)


def _host_ports(pod: Pod) -> Iterator[tuple[tuple[str, str], str]]:
    """On the node's own network the container listens there itself."""
    address = pod.status.pod_ip
    if pod.spec.host_network or not address or address == pod.status.host_ip or has_ended(pod):
        return
    for container in all_containers(pod.spec):
        for port in container.ports:
            if not port.host_port:
                continue
            protocol, target = (port.protocol or "TCP").lower(), f"{address} . {port.container_port}"
            if port.host_ip in ("", "0.0.0.0"):
                yield (HOST_PORTS, f"{protocol} . {port.host_port}"), target
            elif _is_address(port.host_ip):
                yield (HOST_IP_PORTS, f"{protocol} . {port.host_ip} . {port.host_port}"), target


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True
