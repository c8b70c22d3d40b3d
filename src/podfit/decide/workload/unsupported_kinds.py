"""Warnings for workloads that no controller of this cluster acts on."""

from datetime import datetime, timedelta

from podfit.api.autoscaling.v1 import types as v1
from podfit.api.autoscaling.v2 import types as v2
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.pods.templates import PodTemplate
from podfit.api.meta.base import Object
from podfit.core.times import parse_time
from podfit.decide.workload.templates import template_of

MANAGER_LEASE = ("kube-system", "kube-controller-manager")
"""Namespace and name of the Lease that a controller manager holds while it runs."""
_AUTOSCALERS = (v1.HorizontalPodAutoscaler, v2.HorizontalPodAutoscaler)
_HOLDS = 15  # seconds for which a Lease is held when it does not say


def needs_controller(obj: Object) -> bool:
    """Whether the object does nothing without a controller that makes pods of it, or changes how many there are."""
    return isinstance(obj, _AUTOSCALERS) or (not isinstance(obj, PodTemplate) and template_of(obj) is not None)


def has_manager(lease: Lease | None, now: datetime) -> bool:
    """Whether a controller manager runs beside this API server."""
    if lease is None or not lease.spec.holder_identity or lease.spec.renew_time is None:
        return False
    holds = timedelta(seconds=lease.spec.lease_duration_seconds or _HOLDS)
    return abs(now - parse_time(lease.spec.renew_time)) <= holds  # of a time to come: the clock was set back


def unattended_warning(resource: str, obj: Object) -> str:
    lacking = "nothing will change the replicas" if isinstance(obj, _AUTOSCALERS) else "no pods will be created"
    return f"no controller for {resource} runs in this cluster: {lacking}"
