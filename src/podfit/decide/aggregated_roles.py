"""Aggregated cluster roles, and reconciliation of default roles with those of a newer server: which rules they get."""

from collections.abc import Iterable, Sized

from podfit.api.meta.selectors import holds, requirements
from podfit.api.rbac.v1.types import ClusterRole, PolicyRule, Subject


def aggregated_rules(role: ClusterRole, roles: Iterable[ClusterRole]) -> tuple[PolicyRule, ...]:
    """The rules of the roles whose labels the aggregation rule selects, in the order of their names, each once.

    The role itself never counts.
    """
    selectors = role.aggregation_rule.cluster_role_selectors if role.aggregation_rule else ()
    named = sorted(roles, key=lambda role: role.metadata.name)
    found: dict[PolicyRule, None] = {}
    for wanted in map(requirements, selectors):
        for cluster_role in named:
            if cluster_role.metadata.name != role.metadata.name and holds(wanted, cluster_role.metadata.labels):
                found |= dict.fromkeys(cluster_role.rules or ())
    return tuple(found)


def comparisons(role: ClusterRole, roles: Sized) -> int:
    """How many selectors are held against how many roles."""
    return len(role.aggregation_rule.cluster_role_selectors) * len(roles) if role.aggregation_rule else 0


def with_missing_rules(current: tuple[PolicyRule, ...], wanted: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
    """What a default role holds, and what it lacks; what somebody added stays."""
    return (*current, *(rule for rule in wanted if rule not in current))


def with_missing_subjects(current: tuple[Subject, ...], wanted: tuple[Subject, ...]) -> tuple[Subject, ...]:
    return (*current, *(subject for subject in wanted if subject not in current))
