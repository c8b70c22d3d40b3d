"""Pods of a job: failed or not, when finished, whether still to be counted."""

from datetime import datetime

from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.pods.phase import FAILED, SUCCEEDED
from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import parse_time
from podfit.decide.workload.pods import condition

FINALIZER = "batch.kubernetes.io/job-tracking"
"""On pods that are not counted yet."""
INDEXED = "Indexed"


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == INDEXED


def is_suspended(job: Job) -> bool:
    return bool(job.spec.suspend)


def is_tracked(pod: Pod) -> bool:
    return FINALIZER in pod.metadata.finalizers


def waits_for_end(job: Job) -> bool:
    """Whether a pod is replaced only when it has ended, not when it was asked to."""
    return job.spec.pod_replacement_policy == FAILED or job.spec.pod_failure_policy is not None


def is_failed(pod: Pod, job: Job) -> bool:
    if pod.status.phase == FAILED:
        return True
    return not waits_for_end(job) and bool(pod.metadata.deletion_timestamp) and pod.status.phase != SUCCEEDED


def ended_at(pod: Pod, now: datetime) -> datetime:
    """When the last of its containers ended; else when it was asked to go or stopped being ready; else now."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ended = [status.state.terminated for status in statuses]
    times = [
        parse_time(terminated.finished_at) for terminated in ended if terminated is not None and terminated.finished_at
    ]
    if times and len(times) == len(ended):
        return max(times)
    if pod.metadata.deletion_timestamp:
        return parse_time(pod.metadata.deletion_timestamp)
    ready = condition(pod, "Ready")
    if ready is not None and ready.last_transition_time:
        return parse_time(ready.last_transition_time)
    return now


def restarts(pod: Pod) -> int:
    return sum(status.restart_count for status in (*pod.status.init_container_statuses, *pod.status.container_statuses))
