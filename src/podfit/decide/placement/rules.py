"""How many rules about nodes and other pods a pod has, which is what placing it costs.

Whoever may make pods can give one thousands of them, each of which is asked of every node and of every pod there.
"""

from collections.abc import Iterable

from podfit.api.core.v1.pods.affinity import NodeSelectorTerm, PodAffinityTerm
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import LabelSelector
from podfit.decide.placement.volumes import claims_of

MANY = 50
"""Rules; an ordinary pod has fewer than ten."""
MANY_CLAIMS = 10
MOST_AT_ONCE = 5000
"""Questions of one attempt (rules for each node) in a turn of the event loop: some 50 ms."""


def rules_of(pod: Pod) -> int:
    """Terms, constraints, and the requirements and values in them."""
    number = sum(1 + _requirements(given.label_selector) for given in pod.spec.topology_spread_constraints)
    affinity = pod.spec.affinity
    if affinity is None:
        return number
    if (nodes := affinity.node_affinity) is not None:
        required = nodes.required_during_scheduling_ignored_during_execution
        number += _of_nodes(required.node_selector_terms if required is not None else ())
        number += _of_nodes(
            preferred.preference for preferred in nodes.preferred_during_scheduling_ignored_during_execution
        )
    for pods in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if pods is not None:
            number += _of_pods(pods.required_during_scheduling_ignored_during_execution)
            number += _of_pods(
                preferred.pod_affinity_term for preferred in pods.preferred_during_scheduling_ignored_during_execution
            )
    return number


def questions_of(pod: Pod, *, nodes: int, volumes: int) -> int:
    """How much has to be asked of so many nodes and volumes to place it; nothing for an ordinary pod."""
    rules, claims = rules_of(pod), len(claims_of(pod))
    asked = rules * nodes if rules > MANY else 0
    return asked + (claims * (nodes + volumes) if claims > MANY_CLAIMS else 0)


def has_many_rules(pod: Pod) -> bool:
    return rules_of(pod) > MANY


def _of_nodes(terms: Iterable[NodeSelectorTerm]) -> int:
    return sum(
        1 + sum(1 + len(expression.values) // 8 for expression in (*term.match_expressions, *term.match_fields))
        for term in terms
    )


def _of_pods(terms: Iterable[PodAffinityTerm]) -> int:
    return sum(
        1 + len(term.namespaces) // 8 + _requirements(term.label_selector) + _requirements(term.namespace_selector)
        for term in terms
    )


def _requirements(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels) + sum(
        1 + len(expression.values) // 8 for expression in selector.match_expressions
    )
