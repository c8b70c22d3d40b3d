"""Backoff limits for each index of an indexed job.

The last failed pod of an index keeps its finalizer until the next is made, because its annotation tells how often the
index failed.
"""

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.job import policies
from podfit.decide.workload.job.backoff import FAILURES, IGNORED, counted, pause
from podfit.decide.workload.job.indexes import index_of, parse
from podfit.decide.workload.job.pods import ended_at, is_failed
from podfit.decide.workload.job.state import JobState


class Before(msgspec.Struct, frozen=True):
    """How often an index failed before a new pod of it, and how many of these failures were ignored."""

    failures: int = 0
    ignored: int = 0


def failed_indexes(seen: JobState) -> frozenset[int]:
    job = seen.job
    from_before = parse(job.status.failed_indexes or "", job.spec.completions or 0)
    new = {index for pod in seen.newly_failed if _fails_its_index(seen, pod) and (index := index_of(pod)) is not None}
    return from_before | (new - seen.succeeded_indexes)


def _fails_its_index(seen: JobState, pod: Pod) -> bool:
    found = policies.match_failure(seen.job, pod)
    if found.action == policies.FAIL_INDEX:
        return True
    return found.counts and counted(pod, FAILURES) >= (seen.job.spec.backoff_limit_per_index or 0)


def kept(seen: JobState) -> dict[int, Pod]:
    """The failed pod that is not let go yet, by index."""
    active = {index_of(pod) for pod in seen.active}
    done = seen.succeeded_indexes | seen.failed_indexes
    last: dict[int, Pod] = {}
    for pod in seen.newly_failed:
        index = index_of(pod)
        if index is None or index in active or index in done or not is_failed(pod, seen.job):
            continue
        other = last.get(index)
        if other is None or (_times(other), ended_at(other, seen.now)) <= (_times(pod), ended_at(pod, seen.now)):
            last[index] = pod
    return last


def before(seen: JobState, pod: Pod) -> Before:
    """What the pod that follows this failed one bears."""
    failures, ignored = counted(pod, FAILURES), counted(pod, IGNORED)
    if policies.match_failure(seen.job, pod).counts:
        return Before(failures + 1, ignored)
    return Before(failures, ignored + 1)


def remaining(seen: JobState, pod: Pod) -> float:
    """Seconds until the index of this failed pod may be tried again."""
    return pause(_times(pod) + 1, ended_at(pod, seen.now), seen.now)


def _times(pod: Pod) -> int:
    return counted(pod, FAILURES) + counted(pod, IGNORED)
