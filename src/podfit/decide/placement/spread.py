"""Topology spread constraints."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from podfit.api.core.v1.pods.affinity import TopologySpreadConstraint
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.selectors import holds, requirements
from podfit.core.selectors import Requirement
from podfit.decide.placement.node_filters import hard_taints, matches_node, tolerated
from podfit.decide.placement.terms import same_keys
from podfit.decide.placement.view import NodeInfo, Refusal

_TEXT = "node(s) didn't match pod topology spread constraints"


class Rule(msgspec.Struct, frozen=True):
    """One constraint of the pod; `counts` are the matching pods by value of the key, over the nodes that take part."""

    given: TopologySpreadConstraint
    selector: tuple[Requirement, ...] | None
    counts: Counter[str]

    @property
    def key(self) -> str:
        return self.given.topology_key

    @property
    def least(self) -> int:
        """Nothing, as long as there are fewer domains than the pod asks for."""
        return 0 if len(self.counts) < (self.given.min_domains or 1) else min(self.counts.values())


class Spread(msgspec.Struct, frozen=True):
    """`least` is that of each rule, once all nodes are counted."""

    pod: Pod
    rules: tuple[Rule, ...]
    least: tuple[int, ...]

    def refuse(self, view: NodeInfo) -> Refusal | None:
        for rule, least in zip(self.rules, self.least, strict=True):
            if rule.key not in view.labels:
                return Refusal("PodTopologySpread", (f"{_TEXT} (missing required label)",), final=True)
            self_match = holds(rule.selector, self.pod.metadata.labels)
            skew = rule.counts[view.labels[rule.key]] + self_match - least
            if skew > rule.given.max_skew:
                return Refusal("PodTopologySpread", (_TEXT,))
        return None


def spread(pod: Pod, views: Sequence[NodeInfo]) -> Spread | None:
    """None for a pod without a constraint that forbids."""
    rules = constraints(pod, "DoNotSchedule")
    for view in views if rules else ():
        if any(rule.key not in view.labels for rule in rules):
            continue
        for rule in rules:
            if takes_part(pod, rule.given, view):
                rule.counts[view.labels[rule.key]] += matching(pod, rule.selector, view)
    return Spread(pod, rules, tuple(rule.least for rule in rules)) if rules else None


def constraints(pod: Pod, action: str) -> tuple[Rule, ...]:
    return tuple(
        Rule(constraint, selector(pod, constraint), Counter())
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == action
    )


def selector(pod: Pod, given: TopologySpreadConstraint) -> tuple[Requirement, ...] | None:
    wanted = requirements(given.label_selector)
    return None if wanted is None else (*wanted, *same_keys(given.match_label_keys, pod))


def takes_part(pod: Pod, given: TopologySpreadConstraint, view: NodeInfo) -> bool:
    """Nodes where the pod could never go do not make a domain, unless the policies say so."""
    if given.node_affinity_policy != "Ignore" and not matches_node(pod, view.node):
        return False
    return given.node_taints_policy != "Honor" or all(
        tolerated(pod.spec.tolerations, taint) for taint in hard_taints(view.node)
    )


def matching(pod: Pod, wanted: tuple[Requirement, ...] | None, view: NodeInfo) -> int:
    """Pods of the same namespace that are selected and not on their way out."""
    namespace = pod.metadata.namespace

    def matches(other: Pod) -> bool:
        meta = other.metadata
        return meta.namespace == namespace and meta.deletion_timestamp is None and holds(wanted, meta.labels)

    return view.count((namespace, wanted), matches)
