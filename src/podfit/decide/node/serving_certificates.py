"""Approval of kubelets' serving certificates: for which names and addresses one may speak.

Everybody who trusts the cluster's authority believes a serving certificate, so one for the address of another node, or
for a name of the API server, would let its owner pass for them. A node writes its addresses itself, so of names only
its own counts, which it was given when it joined.
"""

from collections.abc import Iterable
from ipaddress import ip_address

from podfit.api.certificates.v1.types import CertificateSigningRequest
from podfit.api.core.v1.nodes.types import Node
from podfit.decide.certificates import NODE, NODE_SERVING, NODES, RequestedNames, objection
from podfit.decide.node.addresses import addresses_of, canonical, is_reachable

_IP_KINDS = ("InternalIP", "ExternalIP")
_API_NAMES = ("kubernetes", "localhost")
_API_DOMAINS = (".svc", ".cluster.local", ".localhost")


def serving_objection(
    request: CertificateSigningRequest, asked: RequestedNames, nodes: Iterable[Node], reserved: frozenset[str]
) -> str:
    """Why a request for a serving certificate is not approved without a person; empty when it is.

    `reserved` are names and IP addresses that are no node's, in one spelling (`canonical`): those of the API server and
    of services.
    """
    if problem := objection(NODE_SERVING, asked, request.spec.usages):
        return problem
    if request.spec.username != asked.common_name or NODES not in request.spec.groups:
        return f"the request was made by {request.spec.username}, not by {asked.common_name}"
    name, nodes = asked.common_name.removeprefix(NODE), tuple(nodes)
    node = next((node for node in nodes if node.metadata.name == name), None)
    if node is None:
        return f'node "{name}" is not registered'
    others = {
        address: other.metadata.name
        for other in nodes
        if other.metadata.name != name
        for address in (other.metadata.name, *addresses_of(other))
    }
    for wanted in (*asked.dns, *asked.addresses):
        if _is_reserved(canonical(wanted), reserved):
            return f"{wanted} is reserved"
    for own, names in (({name}, asked.dns), (_addresses(node), map(canonical, asked.addresses))):
        for wanted in names:
            if wanted.lower() not in own:
                return f'{wanted} is no address of node "{name}"'
            if owner := others.get(canonical(wanted)):
                return f'{wanted} is an address of node "{owner}"'
    return ""


def _addresses(node: Node) -> set[str]:
    """Those that it tells, and nothing that is only called an address."""
    told = (canonical(address.address) for address in node.status.addresses if address.type in _IP_KINDS)
    return {address for address in told if _is_ip(address)}


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_reserved(name: str, reserved: frozenset[str]) -> bool:
    if name in reserved or (_is_ip(name) and not is_reachable(name)):
        return True
    api = name in _API_NAMES or name.startswith("kubernetes.") or "*" in name
    return api or name.endswith(_API_DOMAINS) or ".svc." in name
