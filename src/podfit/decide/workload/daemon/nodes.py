"""Nodes of a daemon set, and the tolerations of its pods."""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.core.v1.nodes.types import Node, Taint
from podfit.api.core.v1.pods.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.decide.placement.node_filters import matches_node, tolerated
from podfit.decide.placement.rules import rules_of
from podfit.decide.workload.history import HASH
from podfit.decide.workload.pods import from_template, labelled

NO_EXECUTE, NO_SCHEDULE = "NoExecute", "NoSchedule"
GENERATION = "pod-template-generation"
_FIELD = "metadata.name"
_TOLERATED = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", NO_SCHEDULE),
    ("memory-pressure", NO_SCHEDULE),
    ("pid-pressure", NO_SCHEDULE),
    ("unschedulable", NO_SCHEDULE),
)
_OF_HOST_NETWORK = (("network-unavailable", NO_SCHEDULE),)


def tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    """The template's, and those of every daemon."""
    taints = (*_TOLERATED, *(_OF_HOST_NETWORK if spec.host_network else ()))
    found = list(spec.tolerations)
    for name, effect in taints:
        made = Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
        same = [place for place, present in enumerate(found) if _same(present, made)]
        if same:
            found[same[0]] = made
        else:
            found.append(made)
    return tuple(found)


def _same(one: Toleration, other: Toleration) -> bool:
    return (one.key, one.effect, one.operator, one.value) == (other.key, other.effect, other.operator, other.value)


def template_of(daemons: DaemonSet, generation: str, digest: str) -> PodTemplateSpec:
    """What its pods are made from, but for their node."""
    labels = {HASH: digest} | ({GENERATION: generation} if generation else {})
    template = labelled(daemons.spec.template, labels)
    return replace(template, spec=replace(template.spec, tolerations=tolerations(template.spec)))


def pod_for(daemons: DaemonSet, template: PodTemplateSpec, node: str) -> Pod:
    """The pod that only this node can take."""
    pod = from_template(template, daemons)
    return replace(pod, spec=replace(pod.spec, affinity=_bound_to(pod.spec.affinity, node)))


def _bound_to(affinity: Affinity | None, node: str) -> Affinity:
    named = NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key=_FIELD, operator="In", values=(node,)),))
    selector = NodeSelector(node_selector_terms=(named,))
    affinity = affinity or Affinity()
    node_affinity = affinity.node_affinity or NodeAffinity()
    node_affinity = replace(node_affinity, required_during_scheduling_ignored_during_execution=selector)
    return replace(affinity, node_affinity=node_affinity)


def node_of(pod: Pod) -> str:
    """The node it is on, or made for; empty for none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for field in term.match_fields:
            if field.key == _FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""


def suits(daemons: DaemonSet, node: Node) -> tuple[bool, bool]:
    """Whether a pod is to be made on this node, and whether one that is there may stay."""
    spec = daemons.spec.template.spec
    if spec.node_name and spec.node_name != node.metadata.name:
        return False, False
    pod = Pod(metadata=daemons.spec.template.metadata, spec=spec)
    if not matches_node(pod, node):
        return False, False
    bad = _untolerated(tolerations(spec), node.spec.taints)
    return not bad, NO_EXECUTE not in bad


def questions(daemons: DaemonSet, nodes: int) -> int:
    """How much it takes to ask so many nodes: as many nodes of a set with few rules."""
    template = daemons.spec.template
    rules = rules_of(Pod(metadata=template.metadata, spec=template.spec)) + len(template.spec.tolerations)
    return nodes * (1 + rules // 10)


def _untolerated(known: Iterable[Toleration], taints: Iterable[Taint]) -> set[str]:
    """Effects that would keep a pod away."""
    effects = (NO_EXECUTE, NO_SCHEDULE)
    return {taint.effect for taint in taints if taint.effect in effects and not tolerated(known, taint)}
