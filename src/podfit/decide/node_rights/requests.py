"""The node authorizer: which requests of a kubelet are allowed, before anything is read or written."""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Protocol

import msgspec

from podfit.decide.node_rights.objects import CSI_NODE_OF_OTHERS, LEASE_ELSEWHERE, LEASE_OF_OTHERS, LEASES

_LISTS = ("list", "watch")
_READS = ("get", *_LISTS)
_CHANGES = ("update", "patch")
_OWN = ("get", "create", "update", "patch", "delete")


class NodeRequest(Protocol):
    """A request for a resource. `name` is also what a field selector fixes, `of_node` the node that one fixes."""

    @property
    def verb(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def subresource(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def of_node(self) -> str: ...


class Denied(msgspec.Struct, frozen=True):
    """Not by the node authorizer; `reason` joins the refusal when RBAC does not allow it either."""

    reason: str = ""


class Decision(Enum):
    ALLOWED = auto()
    IF_RELATED = auto()  # when a pod that is bound to the node refers to the object
    BY_ROLE = auto()  # when a rule of the cluster role system:node covers it


Answer = Denied | Decision


def unrelated(node: str) -> Denied:
    return Denied(f"no relationship found between node '{node}' and this object")


def unknown(user: str) -> Denied:
    """For who is in the group of nodes without a node's name."""
    return Denied(f'unknown node for user "{user}"')


def _pods(node: str, asked: NodeRequest) -> Answer:
    match asked.subresource, asked.verb:
        case "", "get":
            return _get(asked)
        case "", "list" | "watch":
            if asked.of_node == node:
                return Decision.ALLOWED
            if asked.name:
                return Decision.IF_RELATED
            return Denied("can only list/watch pods with spec.nodeName field selector")
        case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
            return Decision.ALLOWED  # which of them, admission says
    return Denied()


def _nodes(node: str, asked: NodeRequest) -> Answer:
    match asked.subresource, asked.verb:
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return Decision.ALLOWED  # which of them, admission says
        case "", "get" | "list" | "watch":
            if asked.name == node:
                return Decision.ALLOWED
            what = f"'{asked.name}'" if asked.name else "all nodes"
            return Denied(f"node '{node}' cannot read {what}, only its own Node object")
    return Denied()


def _related(asked: NodeRequest) -> Answer:
    return Decision.IF_RELATED if asked.name else Denied("No Object name found")


def _claims(asked: NodeRequest) -> Answer:
    if asked.subresource != "status":
        return _get(asked)
    return _related(asked) if asked.verb in _CHANGES else Denied("can only get/update/patch this type")


def _get(asked: NodeRequest) -> Answer:
    if asked.verb != "get":
        return Denied("can only get individual resources of this type")
    return Denied("cannot get subresource") if asked.subresource else _related(asked)


def _read_by_name(asked: NodeRequest) -> Answer:
    """Lists and watches, too, of the one object that a field selector names."""
    if asked.verb not in _READS:
        return Denied("can only read resources of this type")
    if asked.subresource:
        return Denied("cannot read subresource")
    return _related(asked) if asked.namespace else Denied("can only read namespaced object of this type")


def _accounts(asked: NodeRequest) -> Answer:
    if asked.verb == "get" and not asked.subresource:
        return _related(asked)
    if asked.verb != "create" or not asked.name:
        return Denied("can only create tokens for individual service accounts")
    if asked.subresource != "token":
        return Denied("can only create token subresource of serviceaccount")
    return Decision.IF_RELATED


def _lease(node: str, asked: NodeRequest) -> Answer:
    if asked.verb not in _OWN:
        return Denied("can only get, create, update, patch, or delete a node lease")
    if asked.namespace != LEASES:
        return Denied(LEASE_ELSEWHERE)
    return Decision.ALLOWED if asked.verb == "create" or asked.name == node else Denied(LEASE_OF_OTHERS)


def _csi_node(node: str, asked: NodeRequest) -> Answer:
    if asked.verb not in _OWN:
        return Denied("can only get, create, update, patch, or delete a CSINode")
    if asked.subresource:
        return Denied("cannot authorize CSINode subresources")
    return Decision.ALLOWED if asked.verb == "create" or asked.name == node else Denied(CSI_NODE_OF_OTHERS)


def _slices(asked: NodeRequest) -> Answer:
    """This server has no resource slices, so none is related to a node."""
    if asked.subresource:
        return Denied("cannot authorize ResourceSlice subresources")
    if asked.verb in (*_LISTS, "deletecollection"):
        return Denied("can only list/watch/deletecollection resourceslices with nodeName field selector")
    return Decision.ALLOWED if asked.verb == "create" else _related(asked)


_BY_NODE: Mapping[tuple[str, str], Callable[[str, NodeRequest], Answer]] = {
    ("", "nodes"): _nodes,
    ("", "pods"): _pods,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
}
_FOR_ANY: Mapping[tuple[str, str], Callable[[NodeRequest], Answer]] = {
    ("", "configmaps"): _read_by_name,
    ("", "persistentvolumeclaims"): _claims,
    ("", "persistentvolumes"): _get,
    ("", "secrets"): _read_by_name,
    ("", "serviceaccounts"): _accounts,
    ("resource.k8s.io", "resourceclaims"): _get,
    ("resource.k8s.io", "resourceslices"): _slices,
    ("storage.k8s.io", "volumeattachments"): _get,
}
"""By group and resource, as upstream lists them: where it matters which node asks, and where the object alone does."""


def judged(node: str, asked: NodeRequest) -> Answer:
    """What the node authorizer says to the request of this node."""
    kind = asked.group, asked.resource
    if of_node := _BY_NODE.get(kind):
        return of_node(node, asked)
    if of_any := _FOR_ANY.get(kind):
        return of_any(asked)
    return Decision.BY_ROLE
