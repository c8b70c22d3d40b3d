"""ResourceQuota: what a namespace's pods may take together (spec 2).

An increase is charged the moment it is admitted; a decrease frees room only when the node reports it, because until
then the pod may still hold what it had. Both follow from counting pods with their status; only the values of
`spec.resources` are charged as desired, as upstream does.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from podfit.api.base import ResourceList
from podfit.api.core.limits import ResourceQuota, ResourceQuotaStatus, ScopedResourceSelectorRequirement
from podfit.api.core.pods import Pod
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, HUGEPAGES, MEMORY, add, is_extended, only, positive, subtract
from podfit.core.times import parse_time
from podfit.decide.qos import qos_class
from podfit.decide.refused import Refused
from podfit.decide.requests import pod_limits, pod_requests

ONE = Quantity.of(1)
_COMPUTE = (CPU, MEMORY, "ephemeral-storage")
_DEMANDABLE = frozenset(name for each in _COMPUTE for name in (each, f"requests.{each}", f"limits.{each}"))


class Charged(msgspec.Struct, frozen=True):
    """The quotas whose `status.used` grew; to be stored before the pod is."""

    quotas: tuple[ResourceQuota, ...] = ()


def pod_usage(pod: Pod, gates: FeatureGates = DEFAULT_GATES, now: datetime | None = None) -> dict[str, Quantity]:
    """What a pod is charged, under every name that a quota may limit.

    A finished pod is charged as an object only, and so is one whose grace ran out (with `now`).
    """
    usage = {"count/pods": ONE}
    if pod.status.phase in ("Succeeded", "Failed") or _overdue(pod, now):
        return usage
    gates = FeatureGates({**gates.overrides, "InPlacePodLevelResourcesVerticalScaling": False})
    requests, limits = pod_requests(pod, gates=gates, use_status=True), pod_limits(pod, gates=gates, use_status=True)
    return usage | {"pods": ONE} | _named(requests, limits)


def _overdue(pod: Pod, now: datetime | None) -> bool:
    meta = pod.metadata
    if now is None or meta.deletion_timestamp is None:
        return False
    return now > parse_time(meta.deletion_timestamp) + timedelta(seconds=meta.deletion_grace_period_seconds or 0)


def _named(requests: ResourceList, limits: ResourceList) -> dict[str, Quantity]:
    usage = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(HUGEPAGES):
            usage[name] = usage[f"requests.{name}"] = amount
        elif is_extended(name):
            usage[f"requests.{name}"] = amount
    return usage | {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}


def matches(quota: ResourceQuota, pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> bool:
    """Whether every scope of the quota takes the pod in."""
    selector = quota.spec.scope_selector
    requirements = [ScopedResourceSelectorRequirement(operator="Exists", scope_name=each) for each in quota.spec.scopes]
    requirements += selector.match_expressions if selector else ()
    return all(_in_scope(requirement, pod, gates) for requirement in requirements)


def _in_scope(requirement: ScopedResourceSelectorRequirement, pod: Pod, gates: FeatureGates) -> bool:
    match requirement.scope_name:
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
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
            *(each.pod_affinity_term for each in side.preferred_during_scheduling_ignored_during_execution),
        )
    )
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


def recount(
    quota: ResourceQuota, pods: Iterable[Pod], gates: FeatureGates = DEFAULT_GATES, now: datetime | None = None
) -> ResourceQuotaStatus:
    """The status that a quota has when counted afresh, for the names that pods can use."""
    counted = add(*(pod_usage(pod, gates, now) for pod in pods if matches(quota, pod, gates)))
    used = {name: counted.get(name, quota.status.used.get(name, ZERO)) for name in quota.spec.hard}
    return ResourceQuotaStatus(hard=quota.spec.hard, used=used)


def charge(
    new: Pod, old: Pod | None, quotas: Sequence[ResourceQuota], gates: FeatureGates = DEFAULT_GATES
) -> Charged | Refused:
    """Charge a new pod, or a stored one's growth; the first quota that is exceeded refuses (R-064 to R-068).

    What shrinks is not credited here. A quota that charges nothing for this change is not touched, even when it is
    exceeded already.
    """
    charged = []
    for quota in quotas:
        if not matches(quota, new, gates):
            continue
        before = pod_usage(old, gates) if old is not None and matches(quota, old, gates) else {}
        usage = only(pod_usage(new, gates), quota.spec.hard)
        if usage and (problem := _unspecified(new, quota)):
            return Refused(f"failed quota: {quota.metadata.name}: {problem}")
        growth = positive(subtract(usage, only(before, usage)))
        if not growth:
            continue
        verdict = _charge(quota, growth)
        if isinstance(verdict, Refused):
            return verdict
        charged.append(verdict)
    return Charged(tuple(charged))


def _charge(quota: ResourceQuota, growth: ResourceList) -> ResourceQuota | Refused:
    name, status = quota.metadata.name, quota.status
    if unknown := sorted(growth.keys() - status.hard.keys()):
        return Refused(f"status unknown for quota: {name}, resources: {','.join(unknown)}")
    used = add(status.used, growth)
    exceeded = sorted(each for each in growth if used[each] > status.hard[each])
    if exceeded:
        parts = (f"{label}: {_listed(amounts, exceeded)}" for label, amounts in
                 (("requested", growth), ("used", status.used), ("limited", status.hard)))  # fmt: skip
        return Refused(f"exceeded quota: {name}, {', '.join(parts)}")
    return msgspec.structs.replace(quota, status=msgspec.structs.replace(status, used=used))


def _listed(amounts: Mapping[str, Quantity], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)


def _unspecified(pod: Pod, quota: ResourceQuota) -> str:
    """Which containers do not say what the quota limits; a pod that speaks as a whole need not say it for each."""
    if pod.spec.resources is not None:
        return ""
    missing: dict[str, list[str]] = {}
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        named = _named(container.resources.requests, container.resources.limits)
        for name in (quota.spec.hard.keys() & _DEMANDABLE) - named.keys():
            missing.setdefault(name, []).append(container.name)
    texts = (f"{name} for: {','.join(sorted(names))}" for name, names in sorted(missing.items()))
    return f"must specify {'; '.join(texts)}" if missing else ""
