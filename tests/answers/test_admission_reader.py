"""What a plan cannot ask: webhooks and admission policies that cover pods/resize are named."""

from typing import Any

import pytest

from answers.conversation import Conversation, pod
from answers.test_ages import planned

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies")


def rule(*resources: str, operations: tuple[str, ...] = ("UPDATE",)) -> dict[str, Any]:
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": [*operations], "resources": [*resources]}


def hook(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "webhooks": [{"name": name, "clientConfig": {}, "rules": [*rules], **more}]}


async def lines(documents: dict[str, Any], *forbidden: str) -> list[str]:
    conversation = Conversation(36, pod(), forbidden=tuple(f"{ADMISSION}/{kind}" for kind in forbidden))
    conversation.documents |= {f"{ADMISSION}/{kind}": {"items": items} for kind, items in documents.items()}
    found = await planned(conversation, cpu="700m")
    return [note for note in found.notes if note.startswith("may still refuse")]


async def test_without_any_nothing_is_said() -> None:
    assert await lines({}) == []


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ((rule("pods"),), False),
        ((rule("pods/*"),), True),
        ((rule("*/*"),), True),
        ((rule("pods/resize"),), True),
        ((rule("pods/resize", operations=("CREATE",)),), False),
        ((rule("*"),), False),
    ],
)
async def test_a_webhook_is_named_when_its_rules_cover_a_resize(
    rules: tuple[dict[str, Any], ...], *, named: bool
) -> None:
    found = await lines({"validatingwebhookconfigurations": [hook("policy.example.com", *rules)]})
    assert found == ["may still refuse: ValidatingAdmissionWebhook policy.example.com"] * named


async def test_a_webhook_for_other_objects_is_not_named() -> None:
    selector = {"matchLabels": {"app": "other"}}
    hooks = [hook("m.example.com", rule("pods/resize")), hook("n.example.com", rule("*/*"), objectSelector=selector)]
    assert await lines({"mutatingwebhookconfigurations": hooks}) == [
        "may still refuse: MutatingAdmissionWebhook m.example.com"
    ]


async def test_a_policy_is_named() -> None:
    policy = {"metadata": {"name": "sizes"}, "spec": {"matchConstraints": {"resourceRules": [rule("pods/resize")]}}}
    assert await lines({"validatingadmissionpolicies": [policy]}) == [
        "may still refuse: ValidatingAdmissionPolicy sizes"
    ]


async def test_what_may_not_be_read_may_refuse_as_well() -> None:
    (line,) = await lines({}, *KINDS)
    assert line == (
        "may still refuse: MutatingAdmissionWebhook, ValidatingAdmissionWebhook, ValidatingAdmissionPolicy "
        "(you may not read which there are)"
    )
