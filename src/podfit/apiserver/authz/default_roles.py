"""The roles and bindings that a cluster has from the start, read from `default_roles.txt`, which says how."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from podfit.api.meta.v1.types import LabelSelector, ObjectMeta
from podfit.api.rbac.v1.types import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from podfit.decide.aggregated_roles import aggregated_rules

GROUP = "rbac.authorization.k8s.io"
AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_VERBS = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
    "read,write": ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
}


class _Entry(msgspec.Struct, frozen=True):
    """A role as the file has it: its name, its words, and its rules."""

    name: str
    words: tuple[tuple[str, str], ...]
    rules: tuple[PolicyRule, ...]

    def all(self, word: str) -> tuple[str, ...]:
        return tuple(value for name, value in self.words if name == word)

    def one(self, word: str) -> str:
        return next(iter(self.all(word)), "")


@cache
def cluster_roles() -> tuple[ClusterRole, ...]:
    """An aggregated role comes with the rules that its parts have."""
    made = [_cluster_role(entry) for entry in _entries() if not entry.one("namespace") and not entry.one("role")]
    while True:  # one gathers what another has gathered
        grown = [replace(role, rules=aggregated_rules(role, made)) if role.aggregation_rule else role for role in made]
        if grown == made:
            return tuple(made)
        made = grown


@cache
def roles() -> tuple[Role, ...]:
    return tuple(Role(metadata=_meta(entry), rules=entry.rules) for entry in _entries() if entry.one("namespace"))


@cache
def cluster_role_bindings() -> tuple[ClusterRoleBinding, ...]:
    return tuple(
        ClusterRoleBinding(metadata=_meta(entry, entry.name), role_ref=_ref("ClusterRole", entry), subjects=subjects)
        for entry, subjects in _bound()
        if not entry.one("namespace")
    )


@cache
def role_bindings() -> tuple[RoleBinding, ...]:
    return tuple(
        RoleBinding(
            metadata=_meta(entry, entry.one("binding") or entry.name), role_ref=_ref("Role", entry), subjects=subjects
        )
        for entry, subjects in _bound()
        if entry.one("namespace")
    )


@cache
def rules_of_default(name: str) -> tuple[PolicyRule, ...]:
    """The rules of a default cluster role."""
    return next(role.rules or () for role in cluster_roles() if role.metadata.name == name)


def _cluster_role(entry: _Entry) -> ClusterRole:
    joins = {_joining(label): "true" for label in entry.all("joins")}
    selectors = tuple(LabelSelector(match_labels={_joining(label): "true"}) for label in entry.all("gathers"))
    meta = _meta(entry)
    return ClusterRole(
        metadata=replace(meta, labels=meta.labels | joins),
        rules=entry.rules,
        aggregation_rule=AggregationRule(cluster_role_selectors=selectors) if selectors else None,
    )


def _joining(role: str) -> str:
    return f"{GROUP}/aggregate-to-{role}"


def _meta(entry: _Entry, name: str = "") -> ObjectMeta:
    return ObjectMeta(
        name=name or entry.name,
        namespace=entry.one("namespace"),
        labels=dict(_BOOTSTRAPPING),
        annotations={AUTO_UPDATE: "true"},
    )


def _ref(kind: str, entry: _Entry) -> RoleRef:
    return RoleRef(api_group=GROUP, kind=kind, name=entry.one("role") or entry.name)


def _bound() -> Iterator[tuple[_Entry, tuple[Subject, ...]]]:
    for entry in _entries():
        subjects = tuple(_subjects(entry))
        if subjects or entry.all("bound"):
            yield entry, subjects


def _subjects(entry: _Entry) -> Iterator[Subject]:
    for word, value in entry.words:
        if word in ("user", "group"):
            yield Subject(kind=word.capitalize(), api_group=GROUP, name=value)
        elif word == "account":
            namespace, _, name = value.partition("/")
            yield Subject(kind="ServiceAccount", name=name, namespace=namespace)


@cache
def _entries() -> tuple[_Entry, ...]:
    found: list[_Entry] = []
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if line.startswith(" "):
            found[-1] = _with_rule(found[-1], _rule(words))
        else:
            pairs = (word.partition("=") for word in words[1:])
            found.append(_Entry(words[0], tuple((name, value) for name, _, value in pairs), ()))
    return tuple(found)


def _with_rule(entry: _Entry, rule: PolicyRule) -> _Entry:
    return _Entry(entry.name, entry.words, (*entry.rules, rule))


def _rule(words: list[str]) -> PolicyRule:
    verbs = _VERBS.get(words[0]) or tuple(words[0].split(","))
    if words[1] == "path":
        return PolicyRule(verbs=verbs, non_resource_urls=tuple(words[2].split(",")))
    groups = tuple("" if part == "core" else part for part in words[1].split(","))
    names = tuple(words[3].split(",")) if len(words) > 3 else ()
    return PolicyRule(verbs=verbs, api_groups=groups, resources=tuple(words[2].split(",")), resource_names=names)
