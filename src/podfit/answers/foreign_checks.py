"""What others than the API server check of a resize: webhooks and admission policies that cover `pods/resize`.

A plan cannot ask them, so it names them: "may still refuse".
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from podfit.answers.kinds import MUTATING, VALIDATING
from podfit.api.admissionregistration.v1.types import ValidatingWebhook
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.extensions.webhooks.rules import Write, has_rule, is_selected
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.decide.resize.checks import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

POLICIES = "ValidatingAdmissionPolicy"
_POLICIES_PATH = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


class ForeignChecks(msgspec.Struct, frozen=True):
    """Webhooks by the name of the check that asks them; policies as far as their rules go. `unread` has lines."""

    webhooks: tuple[tuple[str, ValidatingWebhook], ...] = ()
    unread: tuple[str, ...] = ()


class _Policy(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta
    spec: "_PolicySpec"


class _PolicySpec(msgspec.Struct, rename="camel"):
    match_constraints: "_Constraints | None" = None


class _Constraints(msgspec.Struct, rename="camel"):
    resource_rules: tuple[Mapping[str, Any], ...] = ()


class _Policies(msgspec.Struct):
    items: tuple[_Policy, ...] = ()


async def read_foreign_checks(client: Client) -> ForeignChecks:
    """What may not be read is told, as it may refuse all the same."""
    found = await asyncio.gather(
        _webhooks(client, MUTATING, MUTATING_WEBHOOKS),
        _webhooks(client, VALIDATING, VALIDATING_WEBHOOKS),
        _policies(client),
    )
    return ForeignChecks(
        tuple(each for part in found if not isinstance(part, str) for each in part),
        tuple(part for part in found if isinstance(part, str)),
    )


async def _webhooks(client: Client, kind: Resource[Any], check: str) -> list[tuple[str, ValidatingWebhook]] | str:
    try:
        listed = await client.list(kind)
    except ApiError as error:
        return [] if error.code == 404 else check
    return [(check, webhook) for configuration in listed.items for webhook in configuration.webhooks]


async def _policies(client: Client) -> list[tuple[str, ValidatingWebhook]] | str:
    """As webhooks of their name, since their rules are of the same form."""
    try:
        listed = codec.decode(await client.request("GET", _POLICIES_PATH), _Policies)
    except ApiError as error:
        return [] if error.code == 404 else POLICIES
    except msgspec.DecodeError:
        return POLICIES
    return [
        (
            POLICIES,
            codec.convert(
                {"name": policy.metadata.name, "rules": policy.spec.match_constraints.resource_rules}, ValidatingWebhook
            ),
        )
        for policy in listed.items
        if policy.spec.match_constraints is not None
    ]


def may_refuse(checks: ForeignChecks, pods: Iterable[Pod]) -> Iterator[str]:
    """A line for each that may refuse a resize of one of the pods; selectors of namespaces are not looked at."""
    writes = [
        Write(
            operation="UPDATE",
            group="",
            version="v1",
            resource="pods",
            subresource="resize",
            namespace=pod.metadata.namespace,
            labels=(pod.metadata.labels,),
        )
        for pod in pods
    ]
    for check, webhook in checks.webhooks:
        if any(has_rule(webhook, write) and is_selected(webhook, write) for write in writes):
            yield f"may still refuse: {check} {webhook.name}"
    if checks.unread and writes:
        yield f"may still refuse: {', '.join(checks.unread)} (you may not read which there are)"
