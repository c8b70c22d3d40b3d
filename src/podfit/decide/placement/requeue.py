"""Queueing hints: which change of the cluster may make an unschedulable pod fit.

Each filter that refused a node says whether the change could turn it; one that says so is enough. A pod that waits for
CPU is not tried again because someone gave back memory (R-083). The question is asked of frozen values, so a test can
ask it without a queue.
"""

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.selectors import holds
from podfit.core.quantity import ZERO
from podfit.decide.placement.node_filters import admits, has_features, has_room, needed_features
from podfit.decide.placement.place import NO_NAMESPACES, Unschedulable
from podfit.decide.placement.pod_affinity import matches_all, required_affinity, required_anti_affinity
from podfit.decide.placement.rules import has_many_rules
from podfit.decide.placement.spread import constraints
from podfit.decide.placement.view import NamespaceLabels, NodeInfo, Resident
from podfit.decide.placement.volumes import claims_of


class Waiting(msgspec.Struct, frozen=True):
    """A pod that was tried, and what came of it. What each change is asked of is worked out here, once: `claims` are
    the names of those that it waits for, `many_rules` whether to ask for all its rules costs more than another try."""

    subject: Resident
    verdict: Unschedulable
    claims: frozenset[str] = frozenset()
    many_rules: bool = False

    def __post_init__(self) -> None:
        pod = self.subject.pod
        if "VolumeBinding" in self.verdict.filters:
            msgspec.structs.force_setattr(self, "claims", frozenset(claims_of(pod)))
        msgspec.structs.force_setattr(self, "many_rules", has_many_rules(pod))

    def mounts(self, claim: "ClaimChanged") -> bool:
        return claim.name in self.claims and claim.namespace == self.subject.pod.metadata.namespace


class PodCame(msgspec.Struct, frozen=True):
    """A pod was put on a node."""

    pod: Pod


class PodGone(msgspec.Struct, frozen=True):
    """A pod that was assigned to a node, or nominated for one, left it or finished."""

    pod: Pod


class PodRelabelled(msgspec.Struct, frozen=True):
    """To rules between pods the old one went and the new one came; to everyone else nothing happened."""

    old: Pod
    new: Pod


class PodShrank(msgspec.Struct, frozen=True):
    """An assigned pod now asks for less; `resources` names of what."""

    resources: frozenset[str]


class NodeChanged(msgspec.Struct, frozen=True):
    """A node came (`old` is None) or is different."""

    old: Node | None
    new: Node


class NodeGone(msgspec.Struct, frozen=True):
    node: Node


class ClaimChanged(msgspec.Struct, frozen=True):
    """A claim came, is different, or went."""

    namespace: str
    name: str


class VolumesChanged(msgspec.Struct, frozen=True):
    """A volume or a class of storage came, or is different."""


Change = PodCame | PodGone | PodRelabelled | PodShrank | NodeChanged | NodeGone | ClaimChanged | VolumesChanged


def worth_retrying(waiting: Waiting, change: Change, *, namespaces: NamespaceLabels = NO_NAMESPACES) -> bool:
    """Could this change turn the verdict? Over-eager is allowed, deaf is not."""
    if isinstance(change, PodGone) and change.pod.metadata.uid == waiting.subject.uid:
        return False  # what it gave up itself was its own already
    if waiting.many_rules and not isinstance(change, ClaimChanged):
        return True
    if not waiting.verdict.refusals:  # there was no node at all
        return isinstance(change, NodeChanged)
    return any(_helps(name, waiting, change, namespaces) for name in waiting.verdict.filters)


def _helps(name: str, waiting: Waiting, change: Change, namespaces: NamespaceLabels) -> bool:
    subject = waiting.subject
    match change:
        case PodShrank(resources):
            return name == "NodeResourcesFit" and bool(resources & waiting.verdict.short_of)
        case PodGone(other):
            return name in ("NodeResourcesFit", "NodePorts") or _without(name, subject, other, namespaces)
        case PodCame(other):
            return _beside(name, subject, other, namespaces)
        case PodRelabelled(old, new):
            return _without(name, subject, old, namespaces) or _beside(name, subject, new, namespaces)
        case ClaimChanged():
            return waiting.mounts(change)
        case VolumesChanged():
            return name == "VolumeBinding"
        case NodeGone():
            return name in ("PodTopologySpread", "InterPodAffinity")
        case NodeChanged(old, new):
            return _opens(name, subject, new) and (old is None or _improved(name, waiting, old, new))


def _opens(name: str, subject: Resident, node: Node) -> bool:
    """Whether this node, empty, would have no objection of that kind."""
    match name:
        case "NodeResourcesFit":
            return has_room(subject.requests, NodeInfo(node)) is None
        case "NodeUnschedulable" | "TaintToleration" | "NodeAffinity":
            refusal = admits(subject.pod, node)
            return refusal is None or refusal.filter != name
        case "NodeDeclaredFeatures":
            return has_features(subject.pod, node) is None
        case _:
            return True


def _improved(name: str, waiting: Waiting, old: Node, new: Node) -> bool:
    """Whether the update touched what the filter looks at, in the right direction."""
    subject = waiting.subject
    match name:
        case "NodeResourcesFit":
            wanted = {"pods", *(name for name, amount in subject.requests.items() if amount)}
            before, after = old.status.allocatable, new.status.allocatable
            return any(after.get(name, ZERO) > before.get(name, ZERO) for name in wanted)
        case "NodeUnschedulable" | "TaintToleration" | "NodeAffinity":
            refusal = admits(subject.pod, old)
            return refusal is not None and refusal.filter == name
        case "NodeDeclaredFeatures":
            return old.status.declared_features != new.status.declared_features
        case "VolumeBinding":
            return old.metadata.labels != new.metadata.labels
        case "PodTopologySpread" | "InterPodAffinity":
            return old.metadata.labels != new.metadata.labels or old.spec.taints != new.spec.taints
        case _:
            return False


def _without(name: str, subject: Resident, other: Pod, namespaces: NamespaceLabels) -> bool:
    """Whether the other's absence helps: one kept away from the other, or the other was the group that this one has to
    join, and may now begin, or it made a skew."""
    if name != "InterPodAffinity":
        return _spreads_over(name, subject, other)
    pod = subject.pod
    apart = _repels(pod, other, namespaces) or _repels(other, pod, namespaces)
    return apart or (_joins(pod, other, namespaces) and _joins(pod, pod, namespaces))


def _beside(name: str, subject: Resident, other: Pod, namespaces: NamespaceLabels) -> bool:
    """Whether the other's presence helps: this one wants to be near it, or a domain has caught up."""
    return (name == "InterPodAffinity" and _joins(subject.pod, other, namespaces)) or _spreads_over(
        name, subject, other
    )


def _joins(pod: Pod, other: Pod, namespaces: NamespaceLabels) -> bool:
    affinity = required_affinity(pod)
    return bool(affinity) and matches_all(affinity, other, namespaces)


def _repels(one: Pod, other: Pod, namespaces: NamespaceLabels) -> bool:
    return any(term.matches(other, namespaces) for term in required_anti_affinity(one))


def _spreads_over(name: str, subject: Resident, other: Pod) -> bool:
    return (
        name == "PodTopologySpread"
        and subject.pod.metadata.namespace == other.metadata.namespace
        and any(holds(given.selector, other.metadata.labels) for given in constraints(subject, "DoNotSchedule"))
    )


def own_change_helps(waiting: Waiting, old: Pod, new: Pod, requests: ResourceList) -> bool:
    """The pod that waits was changed itself; `requests` are its new ones. Asking for less may let it in (R-081)."""
    filters = waiting.verdict.filters
    if "NodeResourcesFit" in filters and shrunk(waiting.subject.requests, requests):
        return True
    if old.spec.tolerations != new.spec.tolerations and filters & {"TaintToleration", "NodeUnschedulable"}:
        return True
    if "NodeDeclaredFeatures" in filters and needed_features(old) != needed_features(new):
        return True
    return old.metadata.labels != new.metadata.labels and bool(filters & {"InterPodAffinity", "PodTopologySpread"})


def shrunk(before: ResourceList, after: ResourceList) -> frozenset[str]:
    """Resources of which `after` asks less than `before`."""
    return frozenset(name for name, amount in before.items() if after.get(name, ZERO) < amount)
