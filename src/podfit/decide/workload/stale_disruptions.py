"""A pod that was to be disrupted and is there still: after two minutes it says so no more.

Whoever marked it may have failed to delete it. The kubelet's own mark stays, as it may take any time to end a pod.
"""

from datetime import datetime

from msgspec.structs import replace

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import format_time, parse_time
from podfit.decide.workload.pods import condition

SECONDS = 120.0
"""Upstream's `stalePodDisruptionTimeout`."""
TARGET, BY_KUBELET = "DisruptionTarget", "TerminationByKubelet"


def stale_in(pod: Pod, now: datetime) -> float | None:
    """Seconds until the mark is stale, 0 when it is; None for a pod without one, or one that goes or has ended."""
    mark = condition(pod, TARGET)
    if mark is None or mark.status != "True" or mark.reason == BY_KUBELET:
        return None
    if pod.metadata.deletion_timestamp or has_ended(pod):
        return None
    if mark.last_transition_time is None:
        return 0.0
    return max(0.0, SECONDS - (now - parse_time(mark.last_transition_time)).total_seconds())


def unmarked(pod: Pod, now: datetime) -> Pod:
    """The condition stays, as False and without a reason."""
    conditions = tuple(
        replace(
            condition,
            status="False",
            reason="",
            message="",
            last_transition_time=format_time(now),
            observed_generation=pod.metadata.generation,
        )
        if condition.type == TARGET
        else condition
        for condition in pod.status.conditions
    )
    return replace(pod, status=replace(pod.status, conditions=conditions))
