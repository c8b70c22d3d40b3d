"""Where a pod may run, and where it would run best (spec 4.2).

Filters run in upstream's order and the first one that refuses a node speaks for it; the reasons of all nodes, counted
and sorted, make the sentence on a pod that fits nowhere. Scores prefer the node that stays emptiest and most balanced,
so two pods do not chase the same room. Equal scores go to the first name: a decision that can be repeated can be
explained.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from podfit.api.base import ResourceList
from podfit.api.core.affinity import NodeSelectorTerm, Toleration
from podfit.api.core.nodes import Node, Taint
from podfit.api.core.pods import Pod
from podfit.core.quantity import ZERO
from podfit.core.selectors import Requirement

HostPort = tuple[str, str, int]
"""Host IP, protocol, port."""

SCORED = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as the scheduler counts it: `requested` is the sum of its pods' requests, status considered (spec 4.1)."""

    node: Node
    requested: ResourceList = field(default_factory=dict)
    pods: int = 0
    ports: frozenset[HostPort] = frozenset()

    @property
    def name(self) -> str:
        return self.node.metadata.name


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one node will not do. Of the `resources` it is short: only more of one of them can change the answer."""

    filter: str
    reasons: tuple[str, ...]
    resources: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Placed:
    node: str


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """`refusals` by node name; `message` is the sentence of the PodScheduled condition and the event."""

    message: str
    refusals: Mapping[str, Refusal]

    @property
    def short_of(self) -> frozenset[str]:
        """Resources of which more, somewhere, might help."""
        return frozenset().union(*(refusal.resources for refusal in self.refusals.values()))

    @property
    def filters(self) -> frozenset[str]:
        return frozenset(refusal.filter for refusal in self.refusals.values())


def place(pod: Pod, requests: ResourceList, views: Sequence[NodeView]) -> Placed | Unschedulable:
    """Choose a node for an unbound pod whose requests (spec only, overhead included) are given."""
    refusals: dict[str, Refusal] = {}
    best: tuple[float, str] | None = None
    for view in views:
        refusal = refuse(pod, requests, view)
        if refusal is not None:
            refusals[view.name] = refusal
            continue
        rank = (-score(pod, requests, view), view.name)
        best = rank if best is None or rank < best else best
    if best is not None:
        return Placed(best[1])
    return Unschedulable(sentence(refusals.values(), len(views)), refusals)


def sentence(refusals: Iterable[Refusal], nodes: int) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    counts = Counter(reason for refusal in refusals for reason in refusal.reasons)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {listed}."


def refuse(pod: Pod, requests: ResourceList, view: NodeView) -> Refusal | None:
    """The first filter's objection to this node, or None when the pod fits."""
    spec = pod.spec
    if spec.node_name and spec.node_name != view.name:
        return Refusal("affinity", ("node(s) didn't match the requested node name",))
    if view.node.spec.unschedulable and not _tolerates(spec.tolerations, _CORDONED):
        return Refusal("unschedulable", ("node(s) were unschedulable",))
    if any(not _tolerates(spec.tolerations, taint) for taint in _hard(view.node)):
        return Refusal("taint", ("node(s) had untolerated taint(s)",))
    if not matches_node(pod, view.node):
        return Refusal("affinity", ("node(s) didn't match Pod's node affinity/selector",))
    if _clash(host_ports(pod), view.ports):
        return Refusal("ports", ("node(s) didn't have free ports for the requested pod ports",))
    return _refuse_resources(requests, view) or _refuse_unsupported(pod)


def _refuse_resources(requests: ResourceList, view: NodeView) -> Refusal | None:
    allocatable, short = view.node.status.allocatable, []
    if view.pods + 1 > allocatable.get("pods", ZERO).value():
        short.append("pods")
    for name, amount in requests.items():
        if amount and view.requested.get(name, ZERO) + amount > allocatable.get(name, ZERO):
            short.append(name)
    if not short:
        return None
    texts = tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in short)
    return Refusal("resources", texts, frozenset(short))


def _refuse_unsupported(pod: Pod) -> Refusal | None:
    """Constraints that are not evaluated are refused by name: placing the pod anyway would break a promise."""
    affinity = pod.spec.affinity
    pairs = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    if any(rules and rules.required_during_scheduling_ignored_during_execution for rules in pairs):
        return Refusal("unsupported", ("node(s) not considered: podfit does not evaluate required pod affinity",))
    if any(each.when_unsatisfiable == "DoNotSchedule" for each in pod.spec.topology_spread_constraints):
        return Refusal("unsupported", ("node(s) not considered: podfit does not evaluate topology spread",))
    return None


_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def _hard(node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]


def _tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
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
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or any(_term_matches(term, node) for term in required.node_selector_terms)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    fields = {"metadata.name": node.metadata.name}
    pairs = [(each, node.metadata.labels) for each in term.match_expressions]
    pairs += [(each, fields) for each in term.match_fields]
    return bool(pairs) and all(
        Requirement(each.key, each.operator, each.values).matches(values) for each, values in pairs
    )


def host_ports(pod: Pod) -> frozenset[HostPort]:
    """The host ports that the pod's containers and sidecars hold while it runs."""
    running = [*pod.spec.containers, *(each for each in pod.spec.init_containers if each.restart_policy == "Always")]
    return frozenset(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in running
        for port in container.ports
        if port.host_port
    )


def _clash(wanted: frozenset[HostPort], taken: frozenset[HostPort]) -> bool:
    return any(
        protocol == other_protocol and port == other_port and (ip == other_ip or "0.0.0.0" in (ip, other_ip))
        for ip, protocol, port in wanted
        for other_ip, other_protocol, other_port in taken
    )


def score(pod: Pod, requests: ResourceList, view: NodeView) -> float:
    """0 to 200: the share left free, and the evenness of cpu and memory; a PreferNoSchedule taint costs 100."""
    shares = []
    for name in SCORED:
        allocatable = view.node.status.allocatable.get(name, ZERO).nano
        used = view.requested.get(name, ZERO).nano + requests.get(name, ZERO).nano
        shares.append(min(used / allocatable, 1.0) if allocatable else 1.0)
    free = 100 * (1 - sum(shares) / len(shares))
    balance = 100 * (1 - abs(shares[0] - shares[1]) / 2)
    soft = [taint for taint in view.node.spec.taints if taint.effect == "PreferNoSchedule"]
    return free + balance - 100 * sum(not _tolerates(pod.spec.tolerations, taint) for taint in soft)
