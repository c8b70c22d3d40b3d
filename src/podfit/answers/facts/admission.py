"""Reads the webhooks and admission policies of a cluster, which may refuse a write beside the API server's own checks.

`may_refuse` judges which of them cover a resize. It is apart because it loads the rules of the API, which only a plan
needs.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from podfit.answers.facts.kinds import MUTATING, VALIDATING
from podfit.api.admissionregistration.v1.types import ValidatingWebhook
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.core.errors import ApiError

POLICIES = "ValidatingAdmissionPolicy"
WEBHOOKS = (MUTATING, VALIDATING)
_POLICIES_PATH = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


class ForeignChecks(msgspec.Struct, frozen=True):
    """Webhooks by the kind of their configuration, policies as far as their rules go, and the kinds not to be read."""

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
    found = await asyncio.gather(*(_webhooks(client, kind) for kind in WEBHOOKS), _policies(client))
    return ForeignChecks(
        tuple(webhook for part in found if not isinstance(part, str) for webhook in part),
        tuple(part for part in found if isinstance(part, str)),
    )


async def _webhooks(client: Client, kind: Resource[Any]) -> list[tuple[str, ValidatingWebhook]] | str:
    try:
        listed = await client.list(kind)
    except ApiError as error:
        return [] if error.code == 404 else kind.info.kind
    return [(kind.info.kind, webhook) for configuration in listed.items for webhook in configuration.webhooks]


async def _policies(client: Client) -> list[tuple[str, ValidatingWebhook]] | str:
    """Policies as webhooks of their name, since their rules are of the same form."""
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
