"""Required affinity and anti-affinity between pods.

Counted once an attempt, over all nodes, by topology: a pair of label and value, such as one zone. Anti-affinity binds
both sides: a pod that runs keeps out a newcomer that its own terms speak of.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.placement.terms import Term, term
from podfit.decide.placement.view import NamespaceLabels, NodeInfo, Refusal

Pair = tuple[str, str]
"""A label of nodes, and its value."""


class Neighbourhood(msgspec.Struct, frozen=True):
    """`wanted` and `unwanted` hold, for each term of the newcomer, how many pods match it in each topology."""

    attract: tuple[Term, ...]
    wanted: tuple[Counter[str], ...]
    repel: tuple[Term, ...]
    unwanted: tuple[Counter[str], ...]
    closed: frozenset[Pair]  # the anti-affinity of pods that run there keeps the newcomer out
    first: bool  # nobody matches its affinity anywhere, but it matches itself: it may begin the group

    def refuse(self, view: NodeInfo) -> Refusal | None:
        if not self._attracted(view):
            return Refusal("InterPodAffinity", ("node(s) didn't match pod affinity rules",), final=True)
        for affinity_term, counts in zip(self.repel, self.unwanted, strict=True):
            if affinity_term.topology_key in view.labels and counts[view.labels[affinity_term.topology_key]]:
                return Refusal("InterPodAffinity", ("node(s) didn't match pod anti-affinity rules",))
        if any(pair in self.closed for pair in view.labels.items()):
            return Refusal("InterPodAffinity", ("node(s) didn't satisfy existing pods anti-affinity rules",))
        return None

    def _attracted(self, view: NodeInfo) -> bool:
        if any(term.topology_key not in view.labels for term in self.attract):
            return False
        return self.first or all(
            counts[view.labels[term.topology_key]] for term, counts in zip(self.attract, self.wanted, strict=True)
        )


def required_affinity(pod: Pod) -> tuple[Term, ...]:
    rules = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    terms = rules.required_during_scheduling_ignored_during_execution if rules else ()
    return tuple(term(pod, required) for required in terms)


def required_anti_affinity(pod: Pod) -> tuple[Term, ...]:
    rules = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    terms = rules.required_during_scheduling_ignored_during_execution if rules else ()
    return tuple(term(pod, required) for required in terms)


def matches_all(terms: Sequence[Term], pod: Pod, namespaces: NamespaceLabels) -> bool:
    return all(term.matches(pod, namespaces) for term in terms)


def matching(terms: tuple[Term, ...], view: NodeInfo, namespaces: NamespaceLabels) -> int:
    """Pods on the node that match all terms."""
    if any(term.in_namespaces is not None for term in terms):  # that changes with the labels of namespaces as well
        return sum(matches_all(terms, resident.pod, namespaces) for resident in view.residents)
    return view.count(terms, lambda other: matches_all(terms, other, namespaces))


def neighbourhood(pod: Pod, views: Sequence[NodeInfo], namespaces: NamespaceLabels) -> Neighbourhood | None:
    """None when neither the pod nor anyone who runs has a say in it."""
    attract, repel = required_affinity(pod), required_anti_affinity(pod)
    closed = frozenset(
        (term.topology_key, view.labels[term.topology_key])
        for view in views
        for resident in view.choosy
        for term in required_anti_affinity(resident.pod)
        if term.topology_key in view.labels and term.matches(pod, namespaces)
    )
    if not (attract or repel or closed):
        return None
    wanted = tuple(Counter[str]() for _ in attract)
    unwanted = tuple(Counter[str]() for _ in repel)
    for view in views:
        alike = matching(attract, view, namespaces) if attract else 0
        for affinity_term, counts in zip(attract, wanted, strict=True):
            _count(counts, affinity_term, view, alike)
        for affinity_term, counts in zip(repel, unwanted, strict=True):
            _count(counts, affinity_term, view, matching((affinity_term,), view, namespaces))
    first = not any(map(len, wanted)) and matches_all(attract, pod, namespaces)
    return Neighbourhood(attract, wanted, repel, unwanted, closed, first)


def _count(counts: Counter[str], affinity_term: Term, view: NodeInfo, amount: int) -> None:
    if amount and affinity_term.topology_key in view.labels:
        counts[view.labels[affinity_term.topology_key]] += amount
