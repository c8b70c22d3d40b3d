"""Evaluates a job: what counts, whether it is over, which pods to create and to delete.

Upstream's order: a condition said before decides; then the pod failure policy, the limits of failures and time, those
of indexes, the success policy; only then are pods made or ended for their number, and completions looked at.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from podfit.api.batch.v1.types import Job, JobCondition
from podfit.api.core.v1.pods.phase import SUCCEEDED
from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import parse_time
from podfit.decide.workload.job import policies
from podfit.decide.workload.job.backoff import Failures
from podfit.decide.workload.job.failed_indexes import failed_indexes
from podfit.decide.workload.job.indexes import index_of, parse
from podfit.decide.workload.job.pods import is_failed, is_indexed, is_suspended, is_tracked, restarts
from podfit.decide.workload.job.state import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    SUCCESS_CRITERIA,
    JobState,
    made,
    said,
    uncounted,
)

FINAL = {FAILURE_TARGET: FAILED, SUCCESS_CRITERIA: COMPLETE}
"""What a job becomes by the condition that says what will become of it, once no pod of it is left."""
BACKOFF_LIMIT = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
DEADLINE = "DeadlineExceeded", "Job was active longer than specified deadline"
MAX_FAILED_INDEXES = "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
FAILED_INDEXES = "FailedIndexes", "Job has failed indexes"
REACHED = "CompletionsReached", "Reached expected number of succeeded pods"


def see(job: Job, pods: Sequence[Pod], freed: frozenset[str], failures: Failures, now: datetime) -> JobState:
    """Without what is only known of indexes and of whether it is over, which `judged` adds."""
    noted = uncounted(job)
    seen = JobState(job=job, pods=tuple(pods), freed=freed, now=now, failures=failures)
    new = [pod for pod in pods if is_tracked(pod) and pod.metadata.uid not in freed and seen.counts_index(pod)]
    succeeded = tuple(pod for pod in new if pod.status.phase == SUCCEEDED and pod.metadata.uid not in noted.succeeded)
    failed = tuple(pod for pod in new if is_failed(pod, job) and pod.metadata.uid not in noted.failed)
    seen = msgspec.structs.replace(
        seen,
        newly_succeeded=succeeded,
        newly_failed=failed,
        succeeded=job.status.succeeded + len(succeeded) + len(noted.succeeded),
        failed=job.status.failed + len(noted.failed) + sum(policies.match_failure(job, pod).counts for pod in failed),
        failures=failures.after(succeeded, failed, now),
    )
    return judged(_indexed(seen) if is_indexed(job) else seen)


def _indexed(seen: JobState) -> JobState:
    from_before = parse(seen.job.status.completed_indexes, seen.job.spec.completions or 0)
    new = {index for pod in seen.newly_succeeded if (index := index_of(pod)) is not None}
    succeeded = from_before | new
    seen = msgspec.structs.replace(seen, succeeded_indexes=succeeded, succeeded=len(succeeded))
    if seen.job.spec.backoff_limit_per_index is None:
        return seen
    return msgspec.structs.replace(seen, failed_indexes=failed_indexes(seen))


def judged(seen: JobState) -> JobState:
    """The state with the condition that says what will become of the job, when it is over."""
    found = _target(seen)
    return seen if found is None else msgspec.structs.replace(seen, target=found)


def _target(seen: JobState) -> JobCondition | None:
    job, spec = seen.job, seen.job.spec
    if (before := said(job, FAILURE_TARGET) or said(job, SUCCESS_CRITERIA)) is not None:
        return before
    failed = [policies.match_failure(job, pod) for pod in seen.pods if is_failed(pod, job)]
    if (by_policy := next((matched for matched in failed if matched.action == policies.FAIL_JOB), None)) is not None:
        return made(FAILURE_TARGET, "PodFailurePolicy", by_policy.message, seen.now)
    limit = spec.backoff_limit if spec.backoff_limit is not None else 6
    if seen.failed > limit or _restarted_too_often(seen, limit):
        return made(FAILURE_TARGET, *BACKOFF_LIMIT, seen.now)
    if deadline_in(seen) == 0:
        return made(FAILURE_TARGET, *DEADLINE, seen.now)
    if not is_indexed(job):
        return None
    number = len(seen.failed_indexes)
    if spec.max_failed_indexes is not None and number > spec.max_failed_indexes:
        return made(FAILURE_TARGET, *MAX_FAILED_INDEXES, seen.now)
    if number and number + len(seen.succeeded_indexes) >= (spec.completions or 0):
        return made(FAILURE_TARGET, *FAILED_INDEXES, seen.now)
    if message := policies.match_success(job, seen.succeeded_indexes):
        return made(SUCCESS_CRITERIA, "SuccessPolicy", message, seen.now)
    return None


def _restarted_too_often(seen: JobState, limit: int) -> bool:
    """Whether pods that restart their containers themselves have done so too often."""
    if seen.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    number = sum(restarts(pod) for pod in seen.pods if pod.status.phase in ("Running", "Pending"))
    return number > 0 if limit == 0 else number >= limit


def deadline_in(seen: JobState) -> float | None:
    """Seconds until the job has been active for too long; None when it has no such limit now, or ends already."""
    spec, started = seen.job.spec, seen.job.status.start_time
    if spec.active_deadline_seconds is None or started is None or is_suspended(seen.job) or seen.target is not None:
        return None
    end = parse_time(started) + timedelta(seconds=spec.active_deadline_seconds)
    return max(0.0, (end - seen.now).total_seconds())


def completed(seen: JobState, active: int) -> JobCondition | None:
    """Whether enough has succeeded, when so many pods are active."""
    wanted = seen.job.spec.completions
    enough = seen.succeeded > 0 if wanted is None else seen.succeeded >= wanted
    return made(SUCCESS_CRITERIA, *REACHED, seen.now) if enough and active == 0 else None
