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


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules of a webhook speak of: the sort of a write."""

    operation: str
    group: str
    version: str
    resource: str
    subresource: str = ""
    namespaced: bool = True
    """Whether it is of an object in a namespace. A namespace itself is of the cluster."""


class WebhookLabels(msgspec.Struct, frozen=True, kw_only=True):
    """What its selectors speak of. `own` are the labels of the object before and after, as far as there are such;
    `namespace` is None where no namespace has a say."""

    own: tuple[Mapping[str, str], ...] = ()
    namespace: Mapping[str, str] | None = None


def is_exempt(group: str, resource: str) -> bool:
    """Webhooks are not asked about webhooks, or a broken one could not be taken away."""
    return group == "admissionregistration.k8s.io" and resource in _EXEMPT


def has_rule(webhook: ValidatingWebhook, target: Target) -> bool:
    return any(_covers(rule, target) for rule in webhook.rules)


def _covers(rule: RuleWithOperations, target: Target) -> bool:
    named = ((rule.operations, target.operation), (rule.api_groups, target.group), (rule.api_versions, target.version))
    if not all(_ALL in allowed or value in allowed for allowed, value in named):
        return False
    in_scope = rule.scope in (None, _ALL) or target.namespaced is (rule.scope == "Namespaced")
    return in_scope and any(_is_of(resource, target) for resource in rule.resources)


def _is_of(pattern: str, target: Target) -> bool:
    resource, _, subresource = pattern.partition("/")
    return resource in (_ALL, target.resource) and subresource in (_ALL, target.subresource)


def is_selected(webhook: ValidatingWebhook, labels: WebhookLabels) -> bool:
    """Whether the namespace's labels and those of the object, old or new, are the wanted ones."""
    if labels.namespace is not None and not _selects(webhook.namespace_selector, labels.namespace):
        return False
    wanted = webhook.object_selector
    return _is_empty(wanted) or any(_selects(wanted, own) for own in labels.own)


def _is_empty(selector: LabelSelector | None) -> bool:
    return selector is None or not (selector.match_labels or selector.match_expressions)


def _selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return True
    expressions = tuple(
        Requirement(expression.key, expression.operator, expression.values) for expression in selector.match_expressions
    )
    return Selector((*from_map(selector.match_labels).requirements, *expressions)).matches(labels)
