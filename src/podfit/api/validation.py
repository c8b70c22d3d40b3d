"""Create and update rules of every kind, the entry of this package."""

from importlib import import_module
from typing import Any

from podfit.api.coordination.v1.types import Lease
from podfit.api.coordination.v1.validation import validate_lease
from podfit.api.core.v1.config import validation as config
from podfit.api.core.v1.config.types import ConfigMap, Secret, ServiceAccount
from podfit.api.core.v1.events import validation as core_events
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.limits import limit_range_validation as limits
from podfit.api.core.v1.limits import quota_validation as quotas
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.namespaces.validation import (
    validate_namespace,
    validate_namespace_status,
    validate_namespace_update,
)
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.nodes.validation import validate_node, validate_node_update
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.validation.pod import validate_pod_create
from podfit.api.core.v1.pods.validation.updates import validate_pod_update
from podfit.api.meta.base import Object
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import (
    validate_any_meta,
    validate_meta,
    validate_meta_update,
    validate_successor,
)
from podfit.api.meta.validation.rules import Rules
from podfit.api.rbac.v1 import validation as rbac
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podfit.api.registry import info_for
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.api.scheduling.v1.validation import validate_priority_class, validate_priority_class_update
from podfit.api.structural.custom import Custom
from podfit.api.structural.validation import validate_custom, validate_custom_status, validate_custom_update
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.fields import FieldError

_RULES: dict[type[Object], Rules] = {
    Namespace: Rules(
        names.dns_label, validate_namespace, validate_namespace_update, validate_namespace_status, metadata="both"
    ),
    Node: Rules(create=validate_node, update=validate_node_update, new_first=True, status=validate_node_update),
    ConfigMap: Rules(create=config.validate_config_map, update=config.validate_config_map_update),
    Secret: Rules(create=config.validate_secret, update=config.validate_secret_update),
    ServiceAccount: Rules(metadata="both"),
    Event: Rules(names.path_segment, core_events.validate_event, metadata="any"),
    Lease: Rules(create=validate_lease, finalizers="any"),
    LimitRange: Rules(create=limits.validate_limit_range, metadata="new"),
    ResourceQuota: Rules(
        create=quotas.validate_quota, update=quotas.validate_quota_update, status=quotas.validate_quota_status
    ),
    PriorityClass: Rules(create=validate_priority_class, update=validate_priority_class_update),
    Role: Rules(names.path_segment, rbac.validate_role, metadata="both"),
    ClusterRole: Rules(names.path_segment, rbac.validate_cluster_role, metadata="both"),
    RoleBinding: Rules(names.path_segment, rbac.validate_role_binding, rbac.validate_binding_update, metadata="both"),
    ClusterRoleBinding: Rules(
        names.path_segment, rbac.validate_cluster_role_binding, rbac.validate_binding_update, metadata="both"
    ),
}

_ON_DEMAND: dict[str, tuple[str, ...]] = {
    "podfit.api.admissionregistration.v1.types": ("podfit.api.admissionregistration.v1.validation",),
    "podfit.api.apiextensions.v1.types": ("podfit.api.apiextensions.v1.validation",),
    "podfit.api.apiregistration.v1.types": ("podfit.api.apiregistration.v1.validation",),
    "podfit.api.apps.v1.deployments": ("podfit.api.apps.v1.validation.deployments",),
    "podfit.api.apps.v1.statefulsets": ("podfit.api.apps.v1.validation.statefulsets",),
    "podfit.api.apps.v1.daemonsets": ("podfit.api.apps.v1.validation.daemonsets",),
    "podfit.api.autoscaling.v1.types": ("podfit.api.autoscaling.v2.validation",),
    "podfit.api.autoscaling.v2.types": ("podfit.api.autoscaling.v2.validation",),
    "podfit.api.batch.v1.types": ("podfit.api.batch.v1.validation.jobs", "podfit.api.batch.v1.validation.cronjobs"),
    "podfit.api.certificates.v1.types": ("podfit.api.certificates.v1.validation",),
    "podfit.api.core.v1.persistentvolumes.claims": ("podfit.api.storage.v1.validation",),
    "podfit.api.core.v1.persistentvolumes.types": ("podfit.api.storage.v1.validation",),
    "podfit.api.core.v1.replication.types": ("podfit.api.core.v1.replication.validation",),
    "podfit.api.core.v1.services.types": (
        "podfit.api.core.v1.services.validation",
        "podfit.api.discovery.v1.validation",
    ),
    "podfit.api.core.v1.pods.templates": ("podfit.api.core.v1.replication.validation",),
    "podfit.api.discovery.v1.types": ("podfit.api.discovery.v1.validation",),
    "podfit.api.events.v1.types": ("podfit.api.events.v1.validation",),
    "podfit.api.networking.v1.types": ("podfit.api.networking.v1.validation",),
    "podfit.api.node.v1.types": ("podfit.api.storage.v1.validation",),
    "podfit.api.policy.v1.types": ("podfit.api.policy.v1.validation",),
    "podfit.api.storage.v1.types": ("podfit.api.storage.v1.validation",),
}
"""Modules of rules, by the module of their kinds: those that no cluster needs to start wait for the first object."""


def _rules_of(kind: type[Object]) -> Rules:
    for name in _ON_DEMAND.get(kind.__module__, ()):
        found: dict[type[Object], Rules] = import_module(name).RULES
        if kind in found:
            return found[kind]
    return _RULES.get(kind, Rules())


def validate_create(obj: Any, gates: FeatureGates = DEFAULT_GATES) -> list[FieldError]:
    """What is wrong with a new object, which has its defaults and its namespace."""
    if isinstance(obj, Pod):
        return validate_pod_create(obj, gates)
    if isinstance(obj, Custom):
        return validate_custom(obj)
    rules = _rules_of(type(obj))
    return _new_meta(obj, rules) + _created(obj, rules, gates)


def _created(obj: Any, rules: Rules, gates: FeatureGates) -> list[FieldError]:
    if rules.create is None:
        return []
    return rules.create(obj, gates) if rules.gated else rules.create(obj)


def _new_meta(obj: Any, rules: Rules) -> list[FieldError]:
    meta: ObjectMeta = obj.metadata
    check = validate_meta if rules.finalizers == "standard" else validate_any_meta
    return check(meta, namespaced=info_for(type(obj)).namespaced, name_rule=rules.name)


def _changed_meta(new: Any, old: Any, rules: Rules) -> list[FieldError]:
    check = validate_meta_update if rules.finalizers == "standard" else validate_successor
    return check(new.metadata, old.metadata)


def validate_update(new: Any, old: Any, gates: FeatureGates = DEFAULT_GATES) -> list[FieldError]:
    """What is wrong with `new` as the successor of `old`, through the main endpoint."""
    if isinstance(new, Pod):
        return validate_pod_update(new, old, gates)
    if isinstance(new, Custom):
        return validate_custom_update(new, old)
    rules = _rules_of(type(new))
    errors = validate_create(new, gates) if rules.new_first else []
    if rules.metadata in ("successor", "both"):
        errors += _changed_meta(new, old, rules)
    if rules.metadata in ("new", "both"):
        errors += _new_meta(new, rules)
    if rules.update:
        return errors + (rules.update(new, old, gates) if rules.gated else rules.update(new, old))
    return errors + _created(new, rules, gates)


def validate_status(new: Any, old: Any) -> list[FieldError]:
    """What is wrong with a status, written through its own endpoint; a pod's has rules of its own."""
    if isinstance(new, Custom):
        return validate_custom_status(new, old)
    rules = _rules_of(type(new))
    errors = _changed_meta(new, old, rules)
    return errors + (rules.status(new, old) if rules.status else [])
