"""RBAC: which rules someone holds, and what a rule covers.

Rules are read from the store for each request: they are few, in memory, decoded once, and never stale.
"""

from collections.abc import Iterable

from podfit.api.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from podfit.apiserver.context import Context
from podfit.apiserver.question import Question
from podfit.net.wire import Identity

MASTERS = "system:masters"


async def rules_of(context: Context, identity: Identity, namespace: str) -> list[PolicyRule]:
    """What the bindings everywhere, and those in the namespace when there is one, give to someone."""
    held: list[PolicyRule] = []
    for binding in await context.all(ClusterRoleBinding):
        if _applies(binding.subjects, identity, ""):
            held += await rules_in(context, binding.role_ref, "")
    if namespace:
        for bound in await context.all(RoleBinding, namespace):
            if _applies(bound.subjects, identity, namespace):
                held += await rules_in(context, bound.role_ref, namespace)
    return held


async def rules_in(context: Context, ref: RoleRef, namespace: str) -> tuple[PolicyRule, ...]:
    """The rules of the role that a binding in the namespace names; none when it is not there."""
    if ref.kind == "ClusterRole":
        cluster_role = await context.find(ClusterRole, ref.name)
        return cluster_role.rules if cluster_role else ()
    role = await context.find(Role, ref.name, namespace) if namespace else None
    return role.rules if role else ()


def covers(rule: PolicyRule, question: Question) -> bool:
    """Whether the rule allows it; `*` is everything, `*/scale` one subresource of everything."""
    if not _any(rule.verbs, question.verb):
        return False
    if question.path:
        return any(_path_matches(each, question.path) for each in rule.non_resource_urls)
    named = not rule.resource_names or question.name in rule.resource_names
    resources = (question.full, f"*/{question.subresource}" if question.subresource else "*")
    return named and _any(rule.api_groups, question.group) and _any(rule.resources, *resources)


def _any(listed: Iterable[str], *wanted: str) -> bool:
    return any(each == "*" or each in wanted for each in listed)


def _path_matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def _applies(subjects: Iterable[Subject], identity: Identity, namespace: str) -> bool:
    return any(_is(subject, identity, namespace) for subject in subjects)


def _is(subject: Subject, identity: Identity, namespace: str) -> bool:
    match subject.kind:
        case "User":
            return subject.name == identity.user
        case "Group":
            return subject.name in identity.groups
        case "ServiceAccount":
            return identity.user == f"system:serviceaccount:{subject.namespace or namespace}:{subject.name}"
    return False
