"""The MutatingWebhookConfiguration by which an API server asks the admission controller (V-068)."""

from collections.abc import Iterator, Mapping

import msgspec

from podfit.api.admissionregistration.v1.types import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    RuleWithOperations,
    ServiceReference,
    WebhookClientConfig,
)
from podfit.api.meta.v1.types import LabelSelector, LabelSelectorRequirement, ObjectMeta
from podfit.client.rest import JSON_PATCH, MERGE_PATCH, Client
from podfit.client.vpa_kinds import GROUP
from podfit.core.errors import ApiError

NAME, WEBHOOK = "vpa-webhook-config", "vpa.k8s.io"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """Where the webhook is reached, by a service or, with `url`, by that; and for which namespaces. Without `pods` only
    VPA objects are reviewed."""

    service: str = "vpa-webhook"
    service_namespace: str = "kube-system"
    url: str = ""
    timeout: int = 30
    fails: bool = False
    namespace: str = ""
    ignored: frozenset[str] = frozenset()
    pods: bool = True
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


def configuration(registration: Registration, authorities: bytes) -> MutatingWebhookConfiguration:
    """`authorities` (PEM) signed the webhook's certificate; empty for a webhook in the server's own process."""
    service = ServiceReference(namespace=registration.service_namespace, name=registration.service)
    where = (
        WebhookClientConfig(ca_bundle=authorities, url=registration.url)
        if registration.url
        else WebhookClientConfig(ca_bundle=authorities, service=service)
    )
    webhook = MutatingWebhook(
        name=WEBHOOK,
        client_config=where,
        rules=tuple(_rules(registration)),
        failure_policy="Fail" if registration.fails else "Ignore",
        side_effects="None",
        timeout_seconds=registration.timeout,
        admission_review_versions=("v1",),
        namespace_selector=_namespaces(registration),
    )
    meta = ObjectMeta(name=NAME, labels=dict(registration.labels))
    return MutatingWebhookConfiguration(metadata=meta, webhooks=(webhook,))


async def register(client: Client, registration: Registration, authorities: bytes) -> None:
    """In place of the one that there is. Raises ApiError or ConnectionError."""
    wanted = configuration(registration, authorities)
    try:
        await client.create(wanted)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        patch = {"metadata": {"labels": wanted.metadata.labels}, "webhooks": wanted.webhooks}
        await client.patch(MutatingWebhookConfiguration, NAME, "", patch, content_type=MERGE_PATCH)


async def trust(client: Client, authorities: bytes) -> None:
    """Another certificate than before. Raises ApiError or ConnectionError."""
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": authorities}]
    await client.patch(MutatingWebhookConfiguration, NAME, "", patch, content_type=JSON_PATCH)


def _rules(registration: Registration) -> Iterator[RuleWithOperations]:
    if registration.pods:
        yield _rule("", "v1", "pods", "CREATE")
    yield _rule(GROUP, "*", "verticalpodautoscalers", "CREATE", "UPDATE")


def _rule(group: str, version: str, resource: str, *operations: str) -> RuleWithOperations:
    return RuleWithOperations(
        operations=operations, api_groups=(group,), api_versions=(version,), resources=(resource,)
    )


def _namespaces(registration: Registration) -> LabelSelector | None:
    """None for all of them."""
    if registration.ignored:
        terms = LabelSelectorRequirement(
            key=NAMESPACE_LABEL, operator="NotIn", values=tuple(sorted(registration.ignored))
        )
    elif registration.namespace:
        terms = LabelSelectorRequirement(key=NAMESPACE_LABEL, operator="In", values=(registration.namespace,))
    else:
        return None
    return LabelSelector(match_expressions=(terms,))
