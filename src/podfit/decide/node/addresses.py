"""Node addresses: which ones a node may claim, and at which it is reached."""

from collections.abc import Iterable
from ipaddress import ip_address

import msgspec

from podfit.api.core.v1.nodes.types import Node


class OwnedAddress(msgspec.Struct, frozen=True):
    address: str
    owner: str


def addresses_of(node: Node) -> frozenset[str]:
    """Addresses and names in the node's status; IP addresses in one spelling."""
    return frozenset(canonical(address.address) for address in node.status.addresses)


def is_served(node: Node) -> bool:
    """Whether its kubelet listens at its addresses. One in the API server's own process does not."""
    return node.status.daemon_endpoints.kubelet_endpoint.port != 0


def taken(node: Node, others: Iterable[Node]) -> OwnedAddress | None:
    """The first of the node's addresses at which the kubelet of another node listens."""
    own = addresses_of(node)
    for other in others:
        if other.metadata.name != node.metadata.name and is_served(other):
            for address in sorted(own & addresses_of(other)):
                return OwnedAddress(address, other.metadata.name)
    return None


def is_reachable(address: str) -> bool:
    """Whether a node may be reached at an IP address: neither this machine's own loopback nor a link's."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    found = mapped or found
    broadcast = str(found) == "255.255.255.255"
    return not (broadcast or found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast)


def canonical(address: str) -> str:
    """One spelling of an IP address, an IPv4 one that is mapped into IPv6 too; names in lower case."""
    try:
        found = ip_address(address)
    except ValueError:
        return address.lower().rstrip(".")
    return str(getattr(found, "ipv4_mapped", None) or found)
