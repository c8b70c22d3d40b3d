"""RBAC: which rules someone holds, through which binding, and what a rule covers.

Bindings and roles are looked up in the store whenever somebody asks, so they are never stale; who is bound by what is
worked out again only after a binding was written.
"""

from collections.abc import Iterable

import msgspec

from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from podfit.apiserver.authz.question import Question
from podfit.apiserver.context import Context
from podfit.net.wire import Identity

MASTERS = "system:masters"
Binding = ClusterRoleBinding | RoleBinding
Index = dict[tuple[str, str], list[tuple[int, Binding, Subject]]]
"""Bindings by whom they are for: a user (service accounts too) or a group."""


class Grant(msgspec.Struct, frozen=True):
    """The rules that a binding gives to someone as `subject`; `missing` when the role that it names is not there."""

    binding: Binding
    subject: Subject
    rules: tuple[PolicyRule, ...]
    missing: bool = False

    def __str__(self) -> str:
        """Which binding of which role to whom, in upstream's words."""
        ref, of, who = self.binding.role_ref, self.binding.metadata, self.subject
        bound = f"{of.name}/{of.namespace}" if of.namespace else of.name
        named = f"{who.name}/{who.namespace or of.namespace}" if who.kind == "ServiceAccount" else who.name
        return f'{self.binding.kind} "{bound}" of {ref.kind} "{ref.name}" to {who.kind} "{named}"'

    @property
    def problem(self) -> str:
        """What is wrong with the binding; empty when nothing is."""
        ref = self.binding.role_ref
        return f'{ref.kind.lower()}.rbac.authorization.k8s.io "{ref.name}" not found' if self.missing else ""


async def bound_to(context: Context, identity: Identity, namespace: str) -> list[tuple[Binding, Subject]]:
    """The bindings for someone, everywhere and in the namespace when there is one, and as whom they are meant."""
    found = _mine(await context.derived(ClusterRoleBinding, "", _of_cluster), identity)
    if namespace:
        found += _mine(await context.derived(RoleBinding, namespace, _of_namespace), identity)
    return found


async def grant_of(context: Context, binding: Binding, subject: Subject) -> Grant:
    rules = await rules_in(context, binding.role_ref, binding.metadata.namespace)
    return Grant(binding, subject, rules or (), missing=rules is None)


def _of_cluster(bindings: list[ClusterRoleBinding]) -> Index:
    return _by_subject(bindings)


def _of_namespace(bindings: list[RoleBinding]) -> Index:
    return _by_subject(bindings)


def _by_subject(bindings: Iterable[Binding]) -> Index:
    found: Index = {}
    for place, binding in enumerate(bindings):
        for subject in binding.subjects:
            found.setdefault(_key(subject, binding.metadata.namespace), []).append((place, binding, subject))
    return found


def _key(subject: Subject, namespace: str) -> tuple[str, str]:
    if subject.kind == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.namespace or namespace}:{subject.name}"
    return subject.kind, subject.name


def _mine(index: Index, identity: Identity) -> list[tuple[Binding, Subject]]:
    """Each binding once, in the order of their names."""
    keys = [("User", identity.user), *(("Group", group) for group in identity.groups)]
    found: dict[int, tuple[Binding, Subject]] = {}
    for key in keys:
        for place, binding, subject in index.get(key, ()):
            found.setdefault(place, (binding, subject))
    return [found[place] for place in sorted(found)]


async def rules_of(context: Context, identity: Identity, namespace: str) -> list[PolicyRule]:
    """Every rule that someone holds there."""
    held: list[PolicyRule] = []
    for binding, _ in await bound_to(context, identity, namespace):
        held += await rules_in(context, binding.role_ref, binding.metadata.namespace) or ()
    return held


async def rules_in(context: Context, ref: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | None:
    """The rules of the role that a binding in the namespace names; None when it is not there."""
    if ref.kind == "ClusterRole":
        cluster_role = await context.find(ClusterRole, ref.name)
        return (cluster_role.rules or ()) if cluster_role else None
    role = await context.find(Role, ref.name, namespace) if namespace else None
    return (role.rules or ()) if role else None


def covers(rule: PolicyRule, question: Question) -> bool:
    """Whether the rule allows it; `*` is everything, `*/scale` one subresource of everything."""
    if not _any(rule.verbs, question.verb):
        return False
    if question.path:
        return any(_path_matches(url, question.path) for url in rule.non_resource_urls)
    named = not rule.resource_names or question.name in rule.resource_names
    resources = (question.full, f"*/{question.subresource}" if question.subresource else "*")
    return named and _any(rule.api_groups, question.group) and _any(rule.resources, *resources)


def _any(listed: Iterable[str], *wanted: str) -> bool:
    return any(value == "*" or value in wanted for value in listed)


def _path_matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
