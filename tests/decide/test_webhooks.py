"""Which webhooks a write concerns."""

from typing import Any

import pytest

from podfit.api.admissionregistration.v1.types import RuleWithOperations, ValidatingWebhook
from podfit.api.meta.v1.types import LabelSelector, LabelSelectorRequirement
from podfit.apiserver.extensions.webhooks.rules import Target, WebhookLabels, has_rule, is_exempt, is_selected


def write(**more: Any) -> Target:
    return Target(**{"operation": "UPDATE", "group": "", "version": "v1", "resource": "pods"} | more)


def rule(
    *resources: str, operations: str = "UPDATE", group: str = "", version: str = "v1", scope: str | None = "*"
) -> ValidatingWebhook:
    made = RuleWithOperations(
        operations=tuple(operations.split()),
        api_groups=(group,),
        api_versions=(version,),
        resources=resources,
        scope=scope,
    )
    return ValidatingWebhook(rules=(made,))


RESIZE, POD = write(subresource="resize"), write()


@pytest.mark.row("R-075")
@pytest.mark.parametrize(
    ("resources", "of_pod", "of_resize"),
    [
        (("pods",), True, False),
        (("pods/resize",), False, True),
        (("pods/*",), True, True),
        (("*",), True, False),
        (("*/*",), True, True),
        (("*/resize",), False, True),
        (("pods/status",), False, False),
        (("nodes", "nodes/*"), False, False),
        (("pods", "pods/resize"), True, True),
    ],
)
def test_resources_of_a_rule(resources: tuple[str, ...], of_pod: bool, of_resize: bool) -> None:
    assert (has_rule(rule(*resources), POD), has_rule(rule(*resources), RESIZE)) == (of_pod, of_resize)


@pytest.mark.parametrize(
    ("given", "asked", "matches"),
    [
        (rule("pods", operations="CREATE"), POD, False),
        (rule("pods", operations="CREATE UPDATE"), POD, True),
        (rule("pods", operations="*"), POD, True),
        (rule("pods", group="apps"), POD, False),
        (rule("pods", group="*"), POD, True),
        (rule("pods", version="v2"), POD, False),
        (rule("pods", version="*"), POD, True),
        (rule("pods", scope="Namespaced"), POD, True),
        (rule("pods", scope="Cluster"), POD, False),
        (rule("pods", scope=None), POD, True),
        (rule("nodes", scope="Cluster"), write(resource="nodes", namespaced=False), True),
        (rule("nodes", scope="Namespaced"), write(resource="nodes", namespaced=False), False),
        (rule("namespaces", scope="Cluster"), write(resource="namespaces", namespaced=False), True),
        (rule("namespaces", scope="Namespaced"), write(resource="namespaces", namespaced=False), False),
        (ValidatingWebhook(), POD, False),
    ],
)
def test_rules(given: ValidatingWebhook, asked: Target, matches: bool) -> None:
    assert has_rule(given, asked) is matches


A_B = LabelSelector(match_labels={"a": "b"})
NOT_A = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="DoesNotExist"),))


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        (None, ({},), True),
        (LabelSelector(), (), True),
        (A_B, ({"a": "b"},), True),
        (A_B, ({}, {"a": "b"}), True),
        (A_B, ({"a": "c"},), False),
        (A_B, (), False),
        (NOT_A, ({"a": "b"},), False),
        (NOT_A, ({"a": "b"}, {}), True),
    ],
)
def test_objects_old_or_new_are_selected_by_label(
    selector: LabelSelector | None, labels: tuple[dict[str, str], ...], selected: bool
) -> None:
    assert is_selected(ValidatingWebhook(object_selector=selector), WebhookLabels(own=labels)) is selected


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [(A_B, {"a": "b"}, True), (A_B, {}, False), (NOT_A, {}, True), (A_B, None, True), (None, {}, True)],
)
def test_namespaces_are_selected_by_label(
    selector: LabelSelector | None, labels: dict[str, str] | None, selected: bool
) -> None:
    webhook = ValidatingWebhook(namespace_selector=selector)
    assert is_selected(webhook, WebhookLabels(namespace=labels)) is selected


def test_webhooks_are_not_asked_about_webhooks() -> None:
    group = "admissionregistration.k8s.io"
    assert is_exempt(group, "mutatingwebhookconfigurations")
    assert is_exempt(group, "validatingwebhookconfigurations")
    assert not is_exempt("", "validatingwebhookconfigurations")
    assert not is_exempt(group, "others")
