"""What the status of a job says of pods that ended, or were ended; by upstream's rules."""

from datetime import UTC, datetime
from typing import Any

import pytest

from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.workload.job.backoff import Failures
from podfit.decide.workload.job.evaluate import see
from podfit.decide.workload.job.state import JobState
from podfit.decide.workload.job.track import suspended, track

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STAMP = "2026-01-01T11:00:00Z"
FIRST = {"rules": [{"succeededIndexes": "0"}]}


def job(status: dict[str, Any] | None = None, **spec: Any) -> Job:
    whole = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimit": 6, **spec}
    return convert({"metadata": {"name": "j", "uid": "u"}, "spec": whole, "status": status or {}}, Job)


def pod(index: int, phase: str, *, going: bool = False) -> Pod:
    meta = {
        "name": f"j-{index}",
        "uid": f"p{index}",
        "finalizers": ["batch.kubernetes.io/job-tracking"],
        "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
        "deletionTimestamp": STAMP if going else None,
    }
    return convert({"metadata": meta, "status": {"phase": phase}}, Pod)


def seen(given: Job, *pods: Pod) -> JobState:
    return see(given, pods, frozenset(), Failures(), NOW)


@pytest.mark.parametrize(
    ("given", "ended", "failed"),
    [
        (job(successPolicy=FIRST), "Succeeded", ()),  # the others are not needed any more
        (job(backoffLimit=0), "Failed", ("p0", "p1", "p2")),  # of a job that fails all count
    ],
)
def test_pods_that_a_job_ends_count_as_failed_only_when_it_fails(
    given: Job, ended: str, failed: tuple[str, ...]
) -> None:
    state = seen(given, pod(0, ended), pod(1, "Running"), pod(2, "Running"))
    assert state.target is not None
    tracked = track(state, given.status)
    assert len(tracked.free) == 3
    noted = tracked.status.uncounted_terminated_pods
    assert noted is not None
    assert noted.failed == failed


def test_the_time_of_a_job_ends_while_it_is_suspended() -> None:
    given = job({"startTime": STAMP}, suspend=True)
    stopped = suspended(seen(given), given.status)
    assert (stopped.start_time, [(condition.type, condition.status) for condition in stopped.conditions]) == (
        None,
        [("Suspended", "True")],
    )
    again = job({"conditions": [{"type": "Suspended", "status": "True"}]}, suspend=False)
    assert suspended(seen(again), again.status).start_time == "2026-01-01T12:00:00Z"
