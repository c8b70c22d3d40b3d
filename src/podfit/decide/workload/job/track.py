"""Job tracking with finalizers: finished pods are recorded by UID, freed of their finalizer, then counted.

Whatever is interrupted in between, no pod counts twice and none is forgotten.
"""

from collections.abc import Set

import msgspec
from msgspec.structs import replace

from podfit.api.batch.v1.types import Job, JobCondition, JobStatus, UncountedTerminatedPods
from podfit.api.core.v1.pods.phase import SUCCEEDED
from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import format_time
from podfit.decide.workload.job import policies
from podfit.decide.workload.job.evaluate import FINAL
from podfit.decide.workload.job.failed_indexes import kept
from podfit.decide.workload.job.indexes import index_of, parse, shown
from podfit.decide.workload.job.pods import is_failed, is_indexed, is_tracked
from podfit.decide.workload.job.state import COMPLETE, FAILURE_TARGET, SUSPENDED, JobState, made, said, uncounted

MOST_UNCOUNTED = 500


SUSPENDED_WORDS = "JobSuspended", "Job suspended"
RESUMED_WORDS = "JobResumed", "Job resumed"


class Tracked(msgspec.Struct, frozen=True):
    """The first write; the pods to free after it. `whole`: every pod that ended is noted."""

    status: JobStatus
    free: tuple[Pod, ...]
    whole: bool


def track(seen: JobState, status: JobStatus) -> Tracked:
    """`status` has the numbers of pods already."""
    job, noted = seen.job, uncounted(seen.job)
    succeeded, failed, indexes = list(noted.succeeded), list(noted.failed), set[int]()
    known = parse(job.status.completed_indexes, job.spec.completions or 0)
    keep = {pod.metadata.uid for pod in kept(seen).values()} if job.spec.backoff_limit_per_index is not None else set()
    free: list[Pod] = []
    whole = True
    fails = seen.target is not None and seen.target.type == FAILURE_TARGET
    for pod in sorted(seen.pods, key=_rank) if is_indexed(job) else seen.pods:
        uid, index = pod.metadata.uid, index_of(pod)
        if not is_tracked(pod) or uid in seen.freed or not _may_go(seen, pod, keep):
            continue
        free.append(pod)
        if pod.status.phase == SUCCEEDED and uid not in failed:
            if not is_indexed(job):
                succeeded += [uid] if uid not in succeeded else []
            elif seen.counts_index(pod) and index is not None and index not in known:
                indexes.add(index)
        elif (is_failed(pod, job) or fails) and uid not in failed and seen.counts_index(pod):
            failed += [uid] if policies.match_failure(job, pod).counts else []
        if len(indexes) + len(succeeded) + len(failed) >= MOST_UNCOUNTED:
            whole = False
            break
    status = replace(
        status, uncounted_terminated_pods=UncountedTerminatedPods(succeeded=tuple(succeeded), failed=tuple(failed))
    )
    if is_indexed(job):
        status = _with_indexes(seen, status, known | indexes)
    if seen.target is not None and said(job, seen.target.type) is None:
        status = replace(status, conditions=(*status.conditions, seen.target))
    return Tracked(status, tuple(free), whole)


def _with_indexes(seen: JobState, status: JobStatus, succeeded: Set[int]) -> JobStatus:
    status = replace(status, succeeded=len(succeeded), completed_indexes=shown(succeeded))
    if seen.job.spec.backoff_limit_per_index is None:
        return status
    return replace(status, failed_indexes=shown(seen.failed_indexes))


def _may_go(seen: JobState, pod: Pod, keep: Set[str]) -> bool:
    """Whether the pod will not change any more, for the job."""
    if seen.job.metadata.deletion_timestamp or seen.target is not None or pod.status.phase == SUCCEEDED:
        return True
    return is_failed(pod, seen.job) and pod.metadata.uid not in keep


def _rank(pod: Pod) -> int:
    index = index_of(pod)
    return -1 if index is None else index


def counted(status: JobStatus, still: Set[str]) -> JobStatus:
    """The status with what is noted and freed in the numbers; `still` are UIDs of pods that bear the finalizer."""
    noted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    left = UncountedTerminatedPods(
        succeeded=tuple(uid for uid in noted.succeeded if uid in still),
        failed=tuple(uid for uid in noted.failed if uid in still),
    )
    return replace(
        status,
        succeeded=status.succeeded + len(noted.succeeded) - len(left.succeeded),
        failed=status.failed + len(noted.failed) - len(left.failed),
        uncounted_terminated_pods=left,
    )


def ended(job: Job, seen: JobState, status: JobStatus, *, whole: bool) -> JobStatus:
    """The status with the final condition, once every pod is counted and none is left that ends."""
    noted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    if seen.target is None or not whole or noted.succeeded or noted.failed or status.terminating or status.active:
        return status
    target = seen.target
    final: JobCondition = made(FINAL[target.type], target.reason, target.message, seen.now)
    conditions = tuple(condition for condition in status.conditions if condition.type != final.type)
    status = replace(status, conditions=(*conditions, final))
    return replace(status, completion_time=format_time(seen.now)) if final.type == COMPLETE else status


def suspended(seen: JobState, status: JobStatus) -> JobStatus:
    """The status with the condition that says whether it is, which a job that never was does not have. Its time ends
    with it, and begins anew after it."""
    wanted = bool(seen.job.spec.suspend)
    before = next((condition for condition in status.conditions if condition.type == SUSPENDED), None)
    if (before is None and not wanted) or (before is not None and (before.status == "True") == wanted):
        return status
    words = SUSPENDED_WORDS if wanted else RESUMED_WORDS
    new = made(SUSPENDED, *words, seen.now, "True" if wanted else "False")
    conditions = tuple(new if condition is before else condition for condition in status.conditions)
    conditions = conditions if before is not None else (*conditions, new)
    return replace(status, conditions=conditions, start_time=None if wanted else format_time(seen.now))
