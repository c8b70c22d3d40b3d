"""RBAC escalation checks: nobody grants rights that they do not hold, unless they may `escalate` or `bind`.

An aggregation rule can gather any rule of the cluster, also later, so whoever sets, changes or removes one has to hold
every right. Upstream's rules: pkg/registry/rbac, `policybased` storage of each kind.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podfit.api.meta.base import Object
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.authz.question import Question
from podfit.apiserver.authz.rbac import MASTERS, covers, rules_in, rules_of
from podfit.apiserver.context import Attributes
from podfit.core.errors import forbidden, not_found

GROUP = "rbac.authorization.k8s.io"
EVERY_RIGHT = (
    PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",)),
    PolicyRule(verbs=("*",), non_resource_urls=("*",)),
)
_AGGREGATES = "must have cluster-admin privileges to use the aggregationRule"


class Escalation(BasePlugin):
    scope = PluginScope(operations=("CREATE", "UPDATE"), kinds=(Role, ClusterRole, RoleBinding, ClusterRoleBinding))

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        if MASTERS in attributes.identity.groups:
            return
        match obj:
            case Role() | ClusterRole():
                granted: tuple[PolicyRule, ...] | None = obj.rules or ()
                resource, verb, name = attributes.info.resource, "escalate", attributes.url_name
            case RoleBinding() | ClusterRoleBinding():
                granted = await rules_in(self.context, obj.role_ref, attributes.namespace)
                resource = "clusterroles" if obj.role_ref.kind == "ClusterRole" else "roles"
                verb, name = "bind", obj.role_ref.name
            case _:
                return
        if attributes.old is not None and _only_collected(obj, attributes.old):
            return
        held = await rules_of(self.context, attributes.identity, attributes.namespace)
        if _held(held, Question(verb, GROUP, resource, name=name)):
            return
        if granted is None:
            raise not_found(resource, name, group=GROUP)
        if excess := _excess(granted, held):
            raise forbidden(attributes.info.resource, attributes.name, _text(attributes, excess), group=GROUP)
        if (_aggregates(obj) or _aggregates(attributes.old)) and _excess(EVERY_RIGHT, held):
            raise forbidden(attributes.info.resource, attributes.name, _AGGREGATES, group=GROUP)


def _aggregates(role: object) -> bool:
    if not isinstance(role, ClusterRole) or role.aggregation_rule is None:
        return False
    return bool(role.aggregation_rule.cluster_role_selectors)


def _only_collected(new: Object, old: Object) -> bool:
    """Whether an update changes no more than what the garbage collector writes: finalizers and owner references."""
    kept = old.metadata
    meta = replace(
        new.metadata,
        finalizers=kept.finalizers,
        owner_references=kept.owner_references,
        managed_fields=kept.managed_fields,
        resource_version=kept.resource_version,
    )
    return bool(replace(new, metadata=meta) == old)


def _excess(granted: Iterable[PolicyRule], held: Iterable[PolicyRule]) -> list[Question]:
    """The accesses among the granted that are not held."""
    rules = tuple(held)
    return [question for rule in granted for question in _questions(rule) if not _held(rules, question)]


def _held(rules: Iterable[PolicyRule], question: Question) -> bool:
    return any(covers(rule, question) for rule in rules)


def _questions(rule: PolicyRule) -> Iterator[Question]:
    """Every single access that the rule gives; a wildcard is an access of its own, which only a wildcard covers."""
    for verb in rule.verbs:
        for path in rule.non_resource_urls:
            yield Question(verb, path=path)
        for group in rule.api_groups:
            for full in rule.resources:
                resource, _, subresource = full.partition("/")
                for name in rule.resource_names or ("",):
                    yield Question(verb, group, resource, subresource, name=name)


def _text(attributes: Attributes, excess: Iterable[Question]) -> str:
    who = attributes.identity
    groups = " ".join(f'"{group}"' for group in who.groups)
    return (
        f'user "{who.user}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
        + "\n".join(_listed(excess))
    )


def _listed(excess: Iterable[Question]) -> list[str]:
    """A line for each resource with the verbs that are missing; named objects and paths have lines of their own."""
    verbs: dict[Question, list[str]] = {}
    for question in excess:
        line = replace(question, verb=question.verb if question.name or question.path else "")
        verbs.setdefault(line, []).append(question.verb)
    return sorted(_shown(of, dict.fromkeys(listed)) for of, listed in verbs.items())


def _shown(of: Question, verbs: Iterable[str]) -> str:
    parts = {"NonResourceURLs": (of.path,)} if of.path else {"APIGroups": (of.group,), "Resources": (of.full,)}
    parts |= {"ResourceNames": (of.name,)} if of.name else {}
    texts = (f"{name}:[{' '.join(map(_quoted, values))}]" for name, values in (parts | {"Verbs": tuple(verbs)}).items())
    return "{" + ", ".join(texts) + "}"


def _quoted(text: str) -> str:
    return f'"{text}"'
