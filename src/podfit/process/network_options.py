"""Options of what serves the network: the proxy of services, and the name server."""

from ipaddress import IPv4Network, ip_address
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from podfit.core.options import LIST, Option, Unit


def _network(text: str) -> str:
    """ValueError for what is no network of IPv4."""
    return str(IPv4Network(text))


def _addresses(given: tuple[str, ...]) -> tuple[str, ...]:
    """ValueError for what is no address."""
    return tuple(str(ip_address(text)) for text in given)


ADDRESSES = replace(LIST, read=lambda given: _addresses(LIST.read(given)), decode=_addresses)
NETWORK = Unit(name="network", read=_network)
_NETWORKS = replace(LIST, read=lambda given: tuple(map(_network, LIST.read(given))))


class ProxyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`cluster_cidr`: addresses of all pods, by default those of the node's own, which `up` knows by itself."""

    cluster_cidr: str = ""
    node_port_addresses: Annotated[
        tuple[str, ...],
        Option(
            "Networks of this machine's addresses at which NodePorts answer others, such as 192.0.2.0/24 or 0.0.0.0/0.",
            flag="nodeport-addresses",
            unit=_NETWORKS,
            usual="this machine and pods only",
        ),
    ] = ()


class DnsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the name server, in `up` and alone."""

    networks: Annotated[
        tuple[str, ...],
        Option(
            "Networks that may ask besides this machine, such as 10.244.0.0/16.",
            flag="dns-allow",
            unit=_NETWORKS,
            usual="with `up` the pods' own; else this machine only",
        ),
    ] = ()
    resolv_conf: Annotated[
        Path | None,
        Option(
            "File with the name servers that are asked for names outside of the cluster.",
            flag="dns-resolv-conf",
            usual="/etc/resolv.conf",
        ),
    ] = None
