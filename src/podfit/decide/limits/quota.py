"""ResourceQuota's rules: whether an object fits the quotas of its namespace.

An increase is charged when it is admitted; a decrease frees room only when the objects are counted again. Of a pod that
shrinks the node has to report it first, because until then the pod may still hold what it had. Both follow from
counting pods with their status; only the values of `spec.resources` are charged as desired, as upstream does.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.limits.types import ResourceQuota, ResourceQuotaStatus
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY, add, only, positive, subtract
from podfit.decide.forbidden import Forbidden
from podfit.decide.limits.quota_scopes import takes_in, terminates
from podfit.decide.limits.quota_usage import PODS, Evaluator, compute_usage, evaluator, pod_usage
from podfit.decide.pod.spare import is_spare, refusal

__all__ = ["Charged", "Present", "charge", "concerned", "count", "matches", "pod_usage", "recount", "uncounted"]

_DEMANDABLE = frozenset(
    name for resource in (CPU, MEMORY) for name in (resource, f"requests.{resource}", f"limits.{resource}")
)
_UPDATED = ("services", "persistentvolumeclaims")


class Charged(msgspec.Struct, frozen=True):
    """The quotas whose `status.used` grew; to be stored along with the object."""

    quotas: tuple[ResourceQuota, ...] = ()


class Present(msgspec.Struct, frozen=True):
    """What there is of a kind in a namespace: the objects, or their number where they are only counted."""

    rules: Evaluator
    objects: Sequence[Any] = ()
    number: int = 0


def concerned(resource: str, group: str, subresource: str, new: Any, old: Any | None) -> Evaluator | None:
    """The rules by which a write is charged; None where it can use up nothing. `old` is None when it is a creation."""
    if old is None:
        return None if subresource else evaluator(resource, group)
    if group:
        return None
    if resource == "pods":
        moved = subresource == "resize" or (not subresource and terminates(new) != terminates(old))
        return PODS if moved else None
    return evaluator(resource, group) if resource in _UPDATED and not subresource else None


def matches(quota: ResourceQuota, obj: Any, gates: FeatureGates = DEFAULT_GATES, rules: Evaluator = PODS) -> bool:
    """Whether the quota limits anything that objects of this kind use, and takes this one in."""
    return any(map(rules.about, quota.spec.hard)) and takes_in(quota, obj, gates)


def uncounted(quota: ResourceQuota, rules: Evaluator) -> bool:
    """Whether the status does not say yet what is used of what the quota limits of a kind."""
    status, names = quota.status, [name for name in quota.spec.hard if rules.about(name)]
    return any(name not in status.used or status.hard.get(name) != quota.spec.hard[name] for name in names)


def recount(
    quota: ResourceQuota, pods: Iterable[Pod], gates: FeatureGates = DEFAULT_GATES, now: datetime | None = None
) -> ResourceQuotaStatus:
    """The status that a quota of pods has when counted afresh."""
    return count(quota, [Present(PODS, tuple(pods))], gates, now)


def count(
    quota: ResourceQuota, kinds: Iterable[Present], gates: FeatureGates = DEFAULT_GATES, now: datetime | None = None
) -> ResourceQuotaStatus:
    """The status that a quota has when these kinds are counted afresh; what is used of others stays as it was."""
    used = {name: amount for name, amount in quota.status.used.items() if name in quota.spec.hard}
    for kind in kinds:
        names = [name for name in quota.spec.hard if kind.rules.about(name)]
        total = _total(quota, kind, gates, now) if names else {}
        used |= {name: total.get(name, ZERO) for name in names}
    return ResourceQuotaStatus(hard=quota.spec.hard, used=used)


def _total(quota: ResourceQuota, kind: Present, gates: FeatureGates, now: datetime | None) -> dict[str, Quantity]:
    if not kind.rules.whole:
        scoped = quota.spec.scopes or quota.spec.scope_selector
        number = Quantity.of(0 if scoped else kind.number)
        return {name: number for name in quota.spec.hard if kind.rules.about(name)}
    return add(*(kind.rules.usage(obj, gates, now) for obj in kind.objects if takes_in(quota, obj, gates)))


def charge(
    new: Any,
    old: Any | None,
    quotas: Sequence[ResourceQuota],
    gates: FeatureGates = DEFAULT_GATES,
    *,
    rules: Evaluator = PODS,
) -> Charged | Forbidden:
    """Charge a new object, or a stored one's growth; the first quota that is exceeded refuses (R-064 to R-068).

    What shrinks is not credited here. A quota that charges nothing for this change is not touched, even when it is
    exceeded already.
    """
    charged = []
    for quota in quotas:
        if not matches(quota, new, gates, rules):
            continue
        before = rules.usage(old, gates, None) if old is not None and takes_in(quota, old, gates) else {}
        usage = only(rules.usage(new, gates, None), quota.spec.hard)
        if isinstance(new, Pod) and (problem := _unspecified(new, quota)):
            return Forbidden(f"failed quota: {quota.metadata.name}: {problem}")
        growth = positive(subtract(usage, only(before, usage)))
        if not growth:
            continue
        verdict = _charge(quota, growth, rules)
        if isinstance(verdict, Forbidden):
            return verdict
        charged.append(verdict)
    return Charged(tuple(charged))


def _charge(quota: ResourceQuota, growth: ResourceList, rules: Evaluator) -> ResourceQuota | Forbidden:
    name, status = quota.metadata.name, quota.status
    if unknown := sorted(growth.keys() - status.hard.keys()):
        return _refused(f"status unknown for quota: {name}, resources: {','.join(unknown)}", rules)
    used = add(status.used, growth)
    exceeded = sorted(resource for resource in growth if used[resource] > status.hard[resource])
    if exceeded:
        parts = (
            f"{label}: {_listed(amounts, exceeded)}"
            for label, amounts in (("requested", growth), ("used", status.used), ("limited", status.hard))
        )
        return _refused(f"exceeded quota: {name}, {', '.join(parts)}", rules)
    return replace(quota, status=replace(status, used=used))


def _refused(text: str, rules: Evaluator) -> Forbidden:
    return Forbidden(text, resource=rules.resource, group=rules.group)


def _listed(amounts: Mapping[str, Quantity], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)


def _unspecified(pod: Pod, quota: ResourceQuota) -> str:
    """Which containers do not say what the quota limits; a pod that speaks as a whole need not say it for each, and one
    on spare capacity has none of it."""
    if pod.spec.resources is not None or (is_spare(pod) and not refusal(pod)):
        return ""
    missing: dict[str, list[str]] = {}
    for container in all_containers(pod.spec):
        named = compute_usage(container.resources.requests, container.resources.limits)
        for name in (quota.spec.hard.keys() & _DEMANDABLE) - named.keys():
            missing.setdefault(name, []).append(container.name)
    texts = (f"{name} for: {','.join(sorted(names))}" for name, names in sorted(missing.items()))
    return f"must specify {'; '.join(texts)}" if missing else ""
