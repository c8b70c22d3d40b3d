"""The kinds of admissionregistration.k8s.io."""

from typing import Any

from podfit.api.admissionregistration.v1.types import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from podfit.api.meta.columns import AGE, NAME, age, name_of
from podfit.api.meta.resource_info import Column, ResourceInfo

WEBHOOKS = (NAME, Column("Webhooks", "integer", description="How many webhooks are registered here."), AGE)


def webhooks_row(configuration: MutatingWebhookConfiguration | ValidatingWebhookConfiguration, now: str) -> list[Any]:
    return [name_of(configuration), len(configuration.webhooks), age(configuration, now)]


_GROUP = "admissionregistration.k8s.io"

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=MutatingWebhookConfiguration,
        unconditional=False,
        group=_GROUP,
        resource="mutatingwebhookconfigurations",
        singular="mutatingwebhookconfiguration",
        namespaced=False,
        categories=("api-extensions",),
        counted=lambda o: o.webhooks,
        columns=WEBHOOKS,
        row=webhooks_row,
    ),
    ResourceInfo(
        type=ValidatingWebhookConfiguration,
        unconditional=False,
        group=_GROUP,
        resource="validatingwebhookconfigurations",
        singular="validatingwebhookconfiguration",
        namespaced=False,
        categories=("api-extensions",),
        counted=lambda o: o.webhooks,
        columns=WEBHOOKS,
        row=webhooks_row,
    ),
)
