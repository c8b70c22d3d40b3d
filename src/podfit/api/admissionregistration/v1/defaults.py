"""Defaults of webhook configurations."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from podfit.api.admissionregistration.v1.types import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import fill, inside
from podfit.api.meta.v1.types import LabelSelector

Webhooks = TypeVar("Webhooks", MutatingWebhookConfiguration, ValidatingWebhookConfiguration)


def _webhooks(configuration: Webhooks) -> Webhooks:
    return inside(configuration, webhooks=_webhook)


def _webhook(webhook: ValidatingWebhook) -> ValidatingWebhook:
    nothing = LabelSelector()
    filled = fill(
        webhook,
        failure_policy="Fail",
        match_policy="Equivalent",
        namespace_selector=nothing,
        object_selector=nothing,
        timeout_seconds=10,
    )
    if isinstance(filled, MutatingWebhook):
        filled = fill(filled, reinvocation_policy="Never")
    return inside(filled, client_config=_webhook_client, rules=lambda rule: fill(rule, scope="*"))


def _webhook_client(config: WebhookClientConfig) -> WebhookClientConfig:
    return inside(config, service=lambda service: fill(service, port=443))


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {
    MutatingWebhookConfiguration: _webhooks,
    ValidatingWebhookConfiguration: _webhooks,
}
