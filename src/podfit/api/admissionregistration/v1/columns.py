"""Columns of `kubectl get` for configurations of webhooks."""

from typing import Any

from podfit.api.admissionregistration.v1.types import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from podfit.api.columns import AGE, NAME, age, name_of
from podfit.api.registry import Column

WEBHOOKS = (NAME, Column("Webhooks", "integer", description="How many webhooks are registered here."), AGE)


def webhooks_row(configuration: MutatingWebhookConfiguration | ValidatingWebhookConfiguration, now: str) -> list[Any]:
    return [name_of(configuration), len(configuration.webhooks), age(configuration, now)]
