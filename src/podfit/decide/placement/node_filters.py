"""Filters of one node by itself: name, affinity, taints, ports, resources, features."""

from collections.abc import Iterable

from podfit.api.core.v1.nodes.types import Node, Taint
from podfit.api.core.v1.pods.affinity import NodeSelectorTerm, Toleration
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import ZERO
from podfit.core.selectors import Requirement
from podfit.decide.placement.view import HostPort, NodeInfo, Refusal

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NO_FREE_PORTS = "node(s) didn't have free ports for the requested pod ports"
_RESTART_ALL = "RestartAllContainers"


def admits(pod: Pod, node: Node) -> Refusal | None:
    """Cordon, taints, node affinity: what no eviction can change."""
    spec = pod.spec
    if not named(pod, node):
        return Refusal("NodeAffinity", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",), final=True)
    if node.spec.unschedulable and not tolerated(spec.tolerations, _CORDONED):
        return Refusal("NodeUnschedulable", ("node(s) were unschedulable",), final=True)
    if any(not tolerated(spec.tolerations, taint) for taint in hard_taints(node)):
        return Refusal("TaintToleration", ("node(s) had untolerated taint(s)",), final=True)
    if not matches_node(pod, node):
        return Refusal("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), final=True)
    return None


def has_ports(ports: frozenset[HostPort], view: NodeInfo) -> Refusal | None:
    if ports and clash(ports, view.ports):
        return Refusal("NodePorts", (NO_FREE_PORTS,))
    return None


def has_room(requests: ResourceList, view: NodeInfo) -> Refusal | None:
    """A request above all that the node has is final; a full house of pods never is."""
    allocatable, short, final = view.node.status.allocatable, [], False
    if len(view.residents) + 1 > allocatable.get("pods", ZERO).value():
        short.append("pods")
    for name, amount in requests.items():
        if amount and view.requested.get(name, ZERO) + amount > allocatable.get(name, ZERO):
            short.append(name)
            final = final or amount > allocatable.get(name, ZERO)
    if not short:
        return None
    texts = tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in short)
    return Refusal("NodeResourcesFit", texts, frozenset(short), final)


def has_features(pod: Pod, node: Node) -> Refusal | None:
    """What running the pod needs of the node's software. A resize needs nothing to be scheduled (R-087)."""
    if needed_features(pod) <= set(node.status.declared_features):
        return None
    return Refusal("NodeDeclaredFeatures", ("node(s) didn't match Pod's required features",), final=True)


def needed_features(pod: Pod) -> frozenset[str]:
    needed = set()
    containers = all_containers(pod.spec)
    if any(rule.action == _RESTART_ALL for container in containers for rule in container.restart_policy_rules):
        needed.add("RestartAllContainersOnContainerExits")
    if pod.spec.host_network and pod.spec.host_users is False:
        needed.add("UserNamespacesHostNetworkSupport")
    return frozenset(needed)


def hard_taints(node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]


def tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def matches_node(pod: Pod, node: Node) -> bool:
    """nodeSelector and required node affinity; terms are alternatives, the expressions of one term all hold."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    terms = _required_terms(pod)
    return terms is None or any(term_matches(term, node) for term in terms)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """A term without any expression matches nothing."""
    fields = {"metadata.name": node.metadata.name}
    pairs = [(expression, node.metadata.labels) for expression in term.match_expressions]
    pairs += [(field, fields) for field in term.match_fields]
    return bool(pairs) and all(
        Requirement(expression.key, expression.operator, expression.values).matches(values)
        for expression, values in pairs
    )


def named(pod: Pod, node: Node) -> bool:
    """False when every term names nodes and none of them this one: such nodes are not even looked at."""
    terms = _required_terms(pod)
    return not terms or any(_may_name(term, node.metadata.name) for term in terms)


def _may_name(term: NodeSelectorTerm, name: str) -> bool:
    return all(
        name in field.values for field in term.match_fields if (field.key, field.operator) == ("metadata.name", "In")
    )


def _required_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...] | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required.node_selector_terms if required else None


def clash(wanted: frozenset[HostPort], taken: frozenset[HostPort]) -> bool:
    """Whether any of the ports is taken: the same protocol and number, at the same address or at all addresses."""
    return any(
        protocol == other_protocol and port == other_port and (ip == other_ip or "0.0.0.0" in (ip, other_ip))
        for ip, protocol, port in wanted
        for other_ip, other_protocol, other_port in taken
    )
