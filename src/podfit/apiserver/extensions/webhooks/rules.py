"""Which webhooks match a write: by rules, namespace selectors and object selectors.

A rule on `pods` says nothing of `pods/resize`; `pods/*` speaks of the pod and of all its subresources, `*` of every
resource without subresources, `*/*` of everything (R-075). Every kind is served in one version here, so
a `matchPolicy` of Equivalent and of Exact come to the same.
"""

from collections.abc import Mapping

import msgspec

from podfit.api.admissionregistration.v1.types import RuleWithOperations, ValidatingWebhook
from podfit.api.meta.v1.types import LabelSelector
from podfit.core.selectors import Requirement, Selector, from_map

_ALL = "*"
_EXEMPT = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """A write as rules see it. `labels` are those of the object before and after, as far as there are such;
    `namespace_labels` is None where no namespace has a say."""

    operation: str
    group: str
    version: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    labels: tuple[Mapping[str, str], ...] = ()
    namespace_labels: Mapping[str, str] | None = None

    @property
    def of_namespace(self) -> bool:
        return (self.group, self.resource) == ("", "namespaces")


def is_exempt(group: str, resource: str) -> bool:
    """Webhooks are not asked about webhooks, or a broken one could not be taken away."""
    return group == "admissionregistration.k8s.io" and resource in _EXEMPT


def has_rule(webhook: ValidatingWebhook, write: Write) -> bool:
    return any(_covers(rule, write) for rule in webhook.rules)


def _covers(rule: RuleWithOperations, write: Write) -> bool:
    named = ((rule.operations, write.operation), (rule.api_groups, write.group), (rule.api_versions, write.version))
    if not all(_ALL in allowed or value in allowed for allowed, value in named):
        return False
    return _in_scope(rule.scope, write) and any(_is_of(resource, write) for resource in rule.resources)


def _in_scope(scope: str | None, write: Write) -> bool:
    """A namespace is itself of the cluster, although requests for it name one."""
    namespaced = bool(write.namespace) and not write.of_namespace
    return scope in (None, _ALL) or namespaced is (scope == "Namespaced")


def _is_of(pattern: str, write: Write) -> bool:
    resource, _, subresource = pattern.partition("/")
    return resource in (_ALL, write.resource) and subresource in (_ALL, write.subresource)


def is_selected(webhook: ValidatingWebhook, write: Write) -> bool:
    """Whether the namespace's labels and those of the object, old or new, are the wanted ones."""
    if write.namespace_labels is not None and not _selects(webhook.namespace_selector, write.namespace_labels):
        return False
    wanted = webhook.object_selector
    return _is_empty(wanted) or any(_selects(wanted, labels) for labels in write.labels)


def _is_empty(selector: LabelSelector | None) -> bool:
    return selector is None or not (selector.match_labels or selector.match_expressions)


def _selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return True
    expressions = tuple(
        Requirement(expression.key, expression.operator, expression.values) for expression in selector.match_expressions
    )
    return Selector((*from_map(selector.match_labels).requirements, *expressions)).matches(labels)
