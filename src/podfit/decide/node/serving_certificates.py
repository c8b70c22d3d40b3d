"""Approval of kubelets' serving certificates: for which names and addresses one may speak.

Everybody who trusts the cluster's authority believes a serving certificate, so one for the address of another node, or
for a name of the API server, would let its owner pass for them.
"""

from collections.abc import Iterable
from ipaddress import ip_address

from podfit.api.certificates.v1.types import CertificateSigningRequest
from podfit.api.core.v1.nodes.types import Node
from podfit.decide.certificates import NODE, NODE_SERVING, NODES, RequestedNames, objection
from podfit.decide.node.addresses import addresses_of, canonical, is_reachable, taken

_API_NAMES = ("kubernetes", "localhost")
_API_DOMAINS = (".svc", ".cluster.local", ".localhost")


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


def _is_reserved(name: str, reserved: frozenset[str]) -> bool:
    name = canonical(name)
    try:
        ip_address(name)
    except ValueError:
        api = name in _API_NAMES or name.startswith("kubernetes.") or "*" in name
        return api or name.endswith(_API_DOMAINS) or ".svc." in name
    return name in reserved or not is_reachable(name)
