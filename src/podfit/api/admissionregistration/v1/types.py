"""admissionregistration.k8s.io/v1: who is asked about a write, beyond the API server itself."""

from typing import Annotated

from podfit.api.meta.base import ATOMIC, Object, Struct, always, keyed
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta


class ServiceReference(Struct):
    namespace: str = always(default="")
    name: str = always(default="")
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(Struct):
    """Either a service or a URL; `ca_bundle` is PEM, the machine's own bundle when it is empty."""

    ca_bundle: bytes = b""
    service: ServiceReference | None = None
    url: str | None = None


class RuleWithOperations(Struct):
    operations: Annotated[tuple[str, ...], ATOMIC] = ()
    api_groups: Annotated[tuple[str, ...], ATOMIC] = ()
    api_versions: Annotated[tuple[str, ...], ATOMIC] = ()
    resources: Annotated[tuple[str, ...], ATOMIC] = ()
    scope: str | None = None


class MatchCondition(Struct):
    name: str = always(default="")
    expression: str = always(default="")


class ValidatingWebhook(Struct):
    name: str = always(default="")
    client_config: WebhookClientConfig = always(default=WebhookClientConfig())
    rules: Annotated[tuple[RuleWithOperations, ...], ATOMIC] = ()
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = always(default=None)
    timeout_seconds: int | None = None
    admission_review_versions: Annotated[tuple[str, ...], ATOMIC] = always(default=())
    match_conditions: Annotated[tuple[MatchCondition, ...], keyed("name")] = ()


class MutatingWebhook(ValidatingWebhook):
    reinvocation_policy: str | None = None


class ValidatingWebhookConfiguration(Object):
    kind: str = always(default="ValidatingWebhookConfiguration")
    api_version: str = always(default="admissionregistration.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    webhooks: Annotated[tuple[ValidatingWebhook, ...], keyed("name")] = ()


class MutatingWebhookConfiguration(Object):
    kind: str = always(default="MutatingWebhookConfiguration")
    api_version: str = always(default="admissionregistration.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    webhooks: Annotated[tuple[MutatingWebhook, ...], keyed("name")] = ()
