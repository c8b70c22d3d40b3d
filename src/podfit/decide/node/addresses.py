"""Node addresses: which ones a node may claim, and for which names its serving certificate may speak.

Everybody who trusts the cluster's authority believes a serving certificate, so one for the address of another node, or
for a name of the API server, would let its owner pass for them.
"""

from collections.abc import Iterable
from ipaddress import ip_address

import msgspec

from podfit.api.certificates.v1.types import CertificateSigningRequest
from podfit.api.core.v1.nodes.types import Node
from podfit.decide.certificates import NODE, NODE_SERVING, NODES, RequestedNames, objection

_API_NAMES = ("kubernetes", "localhost")
_API_DOMAINS = (".svc", ".cluster.local", ".localhost")


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


def serving_objection(
    request: CertificateSigningRequest, asked: RequestedNames, nodes: Iterable[Node], reserved: frozenset[str]
) -> str:
    """Why a request for a serving certificate is not approved without a person; empty when it is.

    `reserved` are IP addresses that are no node's, such as that of the service `kubernetes`.
    """
    if problem := objection(NODE_SERVING, asked, request.spec.usages):
        return problem
    if request.spec.username != asked.common_name or NODES not in request.spec.groups:
        return f"the request was made by {request.spec.username}, not by {asked.common_name}"
    name, nodes = asked.common_name.removeprefix(NODE), tuple(nodes)
    node = next((node for node in nodes if node.metadata.name == name), None)
    if node is None:
        return f'node "{name}" is not registered'
    if clash := taken(node, nodes):
        return f'{clash.address} is an address of node "{clash.owner}"'
    own = addresses_of(node)
    for wanted in (*asked.dns, *asked.addresses):
        if canonical(wanted) not in own:
            return f'{wanted} is no address of node "{name}"'
        if _is_reserved(wanted, reserved):
            return f"{wanted} is reserved"
    return ""


def is_reachable(address: str) -> bool:
    """Whether a node may be reached at an IP address: neither this machine's own loopback nor a link's."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    found = mapped or found
    return not (found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast)


def canonical(address: str) -> str:
    """One spelling of an IP address; names in lower case."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address.lower().rstrip(".")


def _is_reserved(name: str, reserved: frozenset[str]) -> bool:
    name = canonical(name)
    try:
        ip_address(name)
    except ValueError:
        api = name in _API_NAMES or name.startswith("kubernetes.") or "*" in name
        return api or name.endswith(_API_DOMAINS) or ".svc." in name
    return name in reserved or not is_reachable(name)
