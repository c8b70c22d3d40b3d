"""The defaults of every kind, for the server to apply whenever it decodes an object."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from podfit.api.admissionregistration.v1.types import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from podfit.api.apiextensions.v1.types import (
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    storage_version,
)
from podfit.api.apiregistration.v1.types import APIService
from podfit.api.apps.v1.defaults import DEFAULTS as OF_WORKLOADS
from podfit.api.autoscaling.defaults import DEFAULTS as OF_AUTOSCALING
from podfit.api.batch.v1.defaults import DEFAULTS as OF_BATCH
from podfit.api.core.v1.config.types import Secret
from podfit.api.core.v1.limits.types import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
)
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node, NodeStatus
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.defaults import DEFAULTS as OF_SERVICES
from podfit.api.meta.base import Object
from podfit.api.meta.filling import change, completed, fill, inside, rounded
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.networking.v1.defaults import DEFAULTS as OF_NETWORKING
from podfit.api.rbac.v1.types import ClusterRoleBinding, RoleBinding, RoleRef, Subject
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.api.storage.v1.defaults import DEFAULTS as OF_STORAGE
from podfit.api.structural.custom import Custom
from podfit.api.structural.fill import TooMuch
from podfit.api.structural.fill import fill as fill_custom
from podfit.core.errors import ApiError
from podfit.core.features import DEFAULT_GATES, FeatureGates

Kind = TypeVar("Kind", bound=Object)
Webhooks = TypeVar("Webhooks", MutatingWebhookConfiguration, ValidatingWebhookConfiguration)

RBAC_GROUP = "rbac.authorization.k8s.io"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def apply_defaults(obj: Kind, gates: FeatureGates = DEFAULT_GATES) -> Kind:
    """`obj` as its kind's author would have written it out; the same object when nothing is missing. Raises 413 for a
    custom resource whose defaults are too long."""
    if isinstance(obj, Pod):
        return cast(Kind, default_pod(obj, gates))
    if isinstance(obj, Custom):
        try:
            return cast(Kind, change(obj, rest=fill_custom(obj.rest, obj.declared.schema)))
        except TooMuch as error:
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: its {error}") from None
    default = _DEFAULTS.get(type(obj))
    return default(obj) if default else obj


def _namespace(namespace: Namespace) -> Namespace:
    """The name as a label, so that selectors of namespaces can name one."""
    name, labels = namespace.metadata.name, namespace.metadata.labels
    if not name or labels.get(NAMESPACE_LABEL) == name:
        return namespace
    return change(namespace, metadata=change(namespace.metadata, labels={**labels, NAMESPACE_LABEL: name}))


def _node(node: Node) -> Node:
    cidr, cidrs = node.spec.pod_cidr, node.spec.pod_cidrs
    spec = node.spec
    if cidr and not cidrs:
        spec = change(spec, pod_cidrs=(cidr,))
    elif cidrs and not cidr:
        spec = change(spec, pod_cidr=cidrs[0])
    return inside(change(node, spec=spec), status=_node_status)


def _node_status(status: NodeStatus) -> NodeStatus:
    return inside(fill(status, allocatable=status.capacity), allocatable=rounded, capacity=rounded)


def _secret(secret: Secret) -> Secret:
    """`stringData` is a way of writing `data`, and is never read back."""
    if secret.string_data:
        written = {key: text.encode() for key, text in secret.string_data.items()}
        secret = change(secret, data={**secret.data, **written}, string_data={})
    return fill(secret, type="Opaque")


def _limit_range(limits: LimitRange) -> LimitRange:
    return inside(limits, spec=_limit_range_spec)


def _limit_range_spec(spec: LimitRangeSpec) -> LimitRangeSpec:
    return inside(spec, limits=_limit_range_item)


def _limit_range_item(item: LimitRangeItem) -> LimitRangeItem:
    """For containers the default limit falls back to the maximum, the default request to the default limit, then the
    minimum."""
    item = inside(
        item, default=rounded, default_request=rounded, max=rounded, min=rounded, max_limit_request_ratio=rounded
    )
    if item.type != "Container":
        return item
    default = completed(item.default, item.max)
    request = completed(completed(item.default_request, default), item.min)
    return change(item, default=default, default_request=request)


def _resource_quota(quota: ResourceQuota) -> ResourceQuota:
    return inside(quota, spec=_quota_spec, status=_quota_status)


def _quota_spec(spec: ResourceQuotaSpec) -> ResourceQuotaSpec:
    return inside(spec, hard=rounded)


def _quota_status(status: ResourceQuotaStatus) -> ResourceQuotaStatus:
    return inside(status, hard=rounded, used=rounded)


def _priority_class(priority: PriorityClass) -> PriorityClass:
    return fill(priority, preemption_policy="PreemptLowerPriority")


def _binding(binding: RoleBinding | ClusterRoleBinding) -> RoleBinding | ClusterRoleBinding:
    return inside(binding, role_ref=_role_ref, subjects=_subject)


def _role_ref(ref: RoleRef) -> RoleRef:
    return fill(ref, api_group=RBAC_GROUP)


def _subject(subject: Subject) -> Subject:
    return fill(subject, api_group=RBAC_GROUP) if subject.kind in ("User", "Group") else subject


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


def _registration(registered: APIService) -> APIService:
    return inside(registered, spec=lambda spec: inside(spec, service=lambda service: fill(service, port=443)))


def _webhook_client(config: WebhookClientConfig) -> WebhookClientConfig:
    return inside(config, service=lambda service: fill(service, port=443))


def _definition(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """Names that follow from the kind; the version that is stored is one that was."""
    definition = inside(definition, spec=_definition_spec)
    stored, name = definition.status.stored_versions, storage_version(definition)
    if not name or name in stored:
        return definition
    return change(definition, status=change(definition.status, stored_versions=(*stored, name)))


def _definition_spec(spec: CustomResourceDefinitionSpec) -> CustomResourceDefinitionSpec:
    return inside(fill(spec, conversion=CustomResourceConversion(strategy="None")), names=_definition_names)


def _definition_names(names: CustomResourceDefinitionNames) -> CustomResourceDefinitionNames:
    if not names.kind:
        return names
    return fill(names, singular=names.kind.lower(), list_kind=f"{names.kind}List")


_DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {
    Namespace: _namespace,
    Node: _node,
    Secret: _secret,
    LimitRange: _limit_range,
    ResourceQuota: _resource_quota,
    PriorityClass: _priority_class,
    RoleBinding: _binding,
    ClusterRoleBinding: _binding,
    CustomResourceDefinition: _definition,
    MutatingWebhookConfiguration: _webhooks,
    ValidatingWebhookConfiguration: _webhooks,
    **OF_SERVICES,
    **OF_WORKLOADS,
    **OF_BATCH,
    **OF_AUTOSCALING,
    **OF_STORAGE,
    **OF_NETWORKING,
    APIService: _registration,
}
