"""Nobody grants what they do not hold: otherwise whoever may write roles in a namespace may do everything in it.

The verbs `escalate` (on roles) and `bind` (on the role that is bound) lift this, as upstream.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from podfit.api.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding
from podfit.apiserver.admission.chain import Passive
from podfit.apiserver.context import Attributes
from podfit.apiserver.question import Question
from podfit.apiserver.rbac import MASTERS, covers, rules_in, rules_of
from podfit.core.errors import forbidden

GROUP = "rbac.authorization.k8s.io"


class Escalation(Passive):
    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if attributes.operation == "DELETE" or MASTERS in attributes.identity.groups:
            return
        match obj:
            case Role() | ClusterRole():
                granted: tuple[PolicyRule, ...] = obj.rules
                resource, verb, name = attributes.info.resource, "escalate", attributes.name
            case RoleBinding() | ClusterRoleBinding():
                granted = await rules_in(self.context, obj.role_ref, attributes.namespace)
                resource = "clusterroles" if obj.role_ref.kind == "ClusterRole" else "roles"
                verb, name = "bind", obj.role_ref.name
            case _:
                return
        held = await rules_of(self.context, attributes.identity, attributes.namespace)
        excess = [rule for rule in granted if not all(_held(held, each) for each in _questions(rule))]
        if excess and not _held(held, Question(verb, GROUP, resource, name=name)):
            raise forbidden(attributes.info.resource, attributes.name, _text(attributes, excess), group=GROUP)


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


def _text(attributes: Attributes, excess: list[PolicyRule]) -> str:
    who = attributes.identity
    groups = " ".join(f'"{group}"' for group in who.groups)
    listed = "\n".join(_shown(rule) for rule in excess)
    return (
        f'user "{who.user}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{listed}'
    )


def _shown(rule: PolicyRule) -> str:
    parts = {
        "APIGroups": rule.api_groups, "Resources": rule.resources, "ResourceNames": rule.resource_names,
        "NonResourceURLs": rule.non_resource_urls, "Verbs": rule.verbs,
    }  # fmt: skip
    texts = (f"{name}:[{' '.join(map(_quoted, values))}]" for name, values in parts.items() if values)
    return "{" + ", ".join(texts) + "}"


def _quoted(text: str) -> str:
    return f'"{text}"'
