"""The state of a job in one reconcile, and the texts of its conditions."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from podfit.api.batch.v1.types import Job, JobCondition, UncountedTerminatedPods
from podfit.api.core.v1.pods.phase import is_active, is_terminating
from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import format_time
from podfit.decide.workload.job.backoff import Failures
from podfit.decide.workload.job.indexes import index_of
from podfit.decide.workload.job.pods import is_indexed
from podfit.decide.workload.pods import is_ready

COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
FAILURE_TARGET, SUCCESS_CRITERIA = "FailureTarget", "SuccessCriteriaMet"


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """`freed` are UIDs of pods whose finalizer was taken away, which the copy does not show yet."""

    job: Job
    pods: tuple[Pod, ...]
    freed: frozenset[str]
    now: datetime
    failures: Failures
    newly_succeeded: tuple[Pod, ...] = ()
    newly_failed: tuple[Pod, ...] = ()
    succeeded: int = 0
    failed: int = 0
    succeeded_indexes: frozenset[int] = frozenset()
    failed_indexes: frozenset[int] = frozenset()
    target: JobCondition | None = None

    @property
    def active(self) -> tuple[Pod, ...]:
        return tuple(filter(is_active, self.pods))

    @property
    def ready(self) -> int:
        return sum(map(is_ready, self.active))

    @property
    def terminating(self) -> int:
        return sum(map(is_terminating, self.pods))

    def counts_index(self, pod: Pod) -> bool:
        """Whether a pod of an indexed job is one of its completions; every pod of another job is."""
        index = index_of(pod)
        return not is_indexed(self.job) or (index is not None and index < (self.job.spec.completions or 0))


def size_of(job: Job, pods: Sequence[Pod]) -> int:
    """How much there is to decide on: pods, and indexes that may have been told to be done."""
    return len(pods) + ((job.spec.completions or 0) if is_indexed(job) else 0)


def uncounted(job: Job) -> UncountedTerminatedPods:
    """The pods that have ended and are not in the numbers yet."""
    return job.status.uncounted_terminated_pods or UncountedTerminatedPods()


def said(job: Job, kind: str) -> JobCondition | None:
    return next(
        (condition for condition in job.status.conditions if condition.type == kind and condition.status == "True"),
        None,
    )


def is_over(job: Job) -> bool:
    return said(job, COMPLETE) is not None or said(job, FAILED) is not None


def made(kind: str, reason: str, message: str, now: datetime, status: str = "True") -> JobCondition:
    stamp = format_time(now)
    return JobCondition(
        type=kind, status=status, reason=reason, message=message, last_probe_time=stamp, last_transition_time=stamp
    )
