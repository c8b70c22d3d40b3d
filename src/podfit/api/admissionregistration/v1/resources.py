"""The kinds of admissionregistration.k8s.io."""

from podfit.api.admissionregistration.v1.columns import WEBHOOKS, webhooks_row
from podfit.api.admissionregistration.v1.types import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from podfit.api.registry import ResourceInfo

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
