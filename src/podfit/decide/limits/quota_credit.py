"""Quota that is released when a pod shrinks, for one pod, as the quota controller counts it.

A decrease is not credited when it is asked for: the pod may still hold what it had. It counts once the node reports it.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import ZERO
from podfit.core.resources import only, positive, subtract
from podfit.decide.limits.quota import matches, pod_usage


def credit(
    new: Pod, old: Pod, quotas: Iterable[ResourceQuota], gates: FeatureGates = DEFAULT_GATES
) -> tuple[ResourceQuota, ...]:
    """The quotas once the pod that was `old` is counted as `new`; growth is `charge`'s and changes nothing here."""
    return tuple(_credited(quota, new, old, gates) for quota in quotas)


def _credited(quota: ResourceQuota, new: Pod, old: Pod, gates: FeatureGates) -> ResourceQuota:
    if quota.metadata.namespace != old.metadata.namespace or not matches(quota, old, gates):
        return quota
    after = pod_usage(new, gates) if matches(quota, new, gates) else {}
    less = positive(subtract(only(pod_usage(old, gates), quota.spec.hard), only(after, quota.spec.hard)))
    if not less:
        return quota
    used = {name: max(ZERO, amount - less.get(name, ZERO)) for name, amount in quota.status.used.items()}
    return replace(quota, status=replace(quota.status, used=used))
