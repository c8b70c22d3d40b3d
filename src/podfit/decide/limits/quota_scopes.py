"""Scopes of a ResourceQuota: which objects it counts."""

from typing import Any

from podfit.api.core.v1.limits.types import ResourceQuota, ScopedResourceSelectorRequirement
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.decide.pod.qos import qos_class


def takes_in(quota: ResourceQuota, obj: Any, gates: FeatureGates) -> bool:
    """Whether every scope of the quota takes the object in. Only pods and claims are in any scope."""
    selector = quota.spec.scope_selector
    requirements = [ScopedResourceSelectorRequirement(operator="Exists", scope_name=name) for name in quota.spec.scopes]
    requirements += selector.match_expressions if selector else ()
    return all(_in_scope(requirement, obj, gates) for requirement in requirements)


def _in_scope(requirement: ScopedResourceSelectorRequirement, obj: Any, gates: FeatureGates) -> bool:
    if isinstance(obj, Pod):
        return _pod_in_scope(requirement, obj, gates)
    if isinstance(obj, PersistentVolumeClaim) and requirement.scope_name == "VolumeAttributesClass":
        classes = _attributes_classes(obj)
        return any(_has_value(requirement, name) for name in classes or ("",))
    return False


def _pod_in_scope(requirement: ScopedResourceSelectorRequirement, pod: Pod, gates: FeatureGates) -> bool:
    match requirement.scope_name:
        case "Terminating":
            return terminates(pod)
        case "NotTerminating":
            return not terminates(pod)
        case "BestEffort":
            return qos_class(pod, gates) == "BestEffort"
        case "NotBestEffort":
            return qos_class(pod, gates) != "BestEffort"
        case "PriorityClass":
            return _has_value(requirement, pod.spec.priority_class_name)
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(pod)
        case _:
            return False


def scoped_by(obj: Any) -> object:
    """What of an object may change and move it into a scope or out of it."""
    if isinstance(obj, Pod):
        return terminates(obj)
    return _attributes_classes(obj) if isinstance(obj, PersistentVolumeClaim) else None


def terminates(pod: Pod) -> bool:
    """Whether the pod has a deadline."""
    return pod.spec.active_deadline_seconds is not None


def _attributes_classes(claim: PersistentVolumeClaim) -> list[str]:
    status = claim.status
    target = status.modify_volume_status.target_volume_attributes_class_name if status.modify_volume_status else None
    names = (claim.spec.volume_attributes_class_name, status.current_volume_attributes_class_name, target)
    return [name for name in names if name]


def _has_value(requirement: ScopedResourceSelectorRequirement, value: str) -> bool:
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "DoesNotExist":
            return not value
        case _:
            return bool(value)


def _crosses_namespaces(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    terms = (
        term
        for side in sides
        if side is not None
        for term in (
            *side.required_during_scheduling_ignored_during_execution,
            *(weighted.pod_affinity_term for weighted in side.preferred_during_scheduling_ignored_during_execution),
        )
    )
    return any(term.namespaces or term.namespace_selector is not None for term in terms)
