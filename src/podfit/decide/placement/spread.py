"""Topology spread constraints: those in force for a pod, and the filter of those that forbid."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from podfit.api.core.v1.pods.affinity import TopologySpreadConstraint
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.selectors import holds, requirements
from podfit.core.selectors import Requirement
from podfit.decide.placement.node_filters import hard_taints, matches_node, tolerated
from podfit.decide.placement.terms import same_keys
from podfit.decide.placement.view import NodeInfo, Refusal, Resident

_TEXT = "node(s) didn't match pod topology spread constraints"


class Constraint(msgspec.Struct, frozen=True):
    """One constraint of a pod with its selector worked out; hashable, and equal for pods that ask the same."""

    topology_key: str
    max_skew: int
    min_domains: int
    node_affinity_policy: str
    node_taints_policy: str
    selector: tuple[Requirement, ...] | None


class Rule(msgspec.Struct, frozen=True):
    """`counts` are the matching pods by value of the key, over the nodes that take part."""

    given: Constraint
    counts: Counter[str]

    @property
    def key(self) -> str:
        return self.given.topology_key

    @property
    def least(self) -> int:
        """Nothing, as long as there are fewer domains than the pod asks for."""
        return 0 if len(self.counts) < self.given.min_domains else min(self.counts.values())


class Spread(msgspec.Struct, frozen=True):
    """`least` is that of each rule, once all nodes are counted."""

    pod: Pod
    rules: tuple[Rule, ...]
    least: tuple[int, ...]

    def refuse(self, view: NodeInfo) -> Refusal | None:
        for rule, least in zip(self.rules, self.least, strict=True):
            if rule.key not in view.labels:
                return Refusal("PodTopologySpread", (f"{_TEXT} (missing required label)",), final=True)
            self_match = holds(rule.given.selector, self.pod.metadata.labels)
            skew = rule.counts[view.labels[rule.key]] + self_match - least
            if skew > rule.given.max_skew:
                return Refusal("PodTopologySpread", (_TEXT,))
        return None


def spread(subject: Resident, views: Sequence[NodeInfo]) -> Spread | None:
    """None for a pod without a constraint that forbids."""
    pod = subject.pod
    rules = tuple(Rule(constraint, Counter()) for constraint in constraints(subject, "DoNotSchedule"))
    for view in views if rules else ():
        if any(rule.key not in view.labels for rule in rules):
            continue
        for rule in rules:
            if takes_part(pod, rule.given, view):
                rule.counts[view.labels[rule.key]] += matching(pod, rule.given.selector, view)
    return Spread(pod, rules, tuple(rule.least for rule in rules)) if rules else None


def constraints(subject: Resident, action: str) -> tuple[Constraint, ...]:
    """Those in force with this `whenUnsatisfiable`: the pod's own, or else the defaults."""
    pod, defaults = subject.pod, subject.default_spread
    if pod.spec.topology_spread_constraints:
        return tuple(
            _constraint(given, _selector(pod, given))
            for given in pod.spec.topology_spread_constraints
            if given.when_unsatisfiable == action
        )
    if defaults is None:
        return ()
    return tuple(
        _constraint(given, defaults.selector)
        for given in defaults.defaulting.constraints
        if given.when_unsatisfiable == action
    )


def _constraint(given: TopologySpreadConstraint, selector: tuple[Requirement, ...] | None) -> Constraint:
    return Constraint(
        given.topology_key,
        given.max_skew,
        given.min_domains or 1,
        given.node_affinity_policy,
        given.node_taints_policy,
        selector,
    )


def _selector(pod: Pod, given: TopologySpreadConstraint) -> tuple[Requirement, ...] | None:
    wanted = requirements(given.label_selector)
    return None if wanted is None else (*wanted, *same_keys(given.match_label_keys, pod))


def takes_part(pod: Pod, given: Constraint, view: NodeInfo) -> bool:
    """Nodes where the pod could never go do not make a domain, unless the policies say so."""
    if given.node_affinity_policy != "Ignore" and not matches_node(pod, view.node):
        return False
    return given.node_taints_policy != "Honor" or all(
        tolerated(pod.spec.tolerations, taint) for taint in hard_taints(view.node)
    )


def counts_for(other: Pod, namespace: str, wanted: tuple[Requirement, ...]) -> bool:
    """Pods of the same namespace that are selected and not on their way out."""
    meta = other.metadata
    return meta.namespace == namespace and meta.deletion_timestamp is None and holds(wanted, meta.labels)


def matching(pod: Pod, wanted: tuple[Requirement, ...] | None, view: NodeInfo) -> int:
    """How many count on this node. As upstream, an empty selector counts nobody, although it selects everybody."""
    if not wanted:
        return 0
    namespace = pod.metadata.namespace
    return view.count((namespace, wanted), lambda other: counts_for(other, namespace, wanted))
