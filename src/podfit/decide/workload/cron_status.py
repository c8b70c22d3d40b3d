"""What the status of a cron job says of its jobs that run, and what people are told of those that do not any more."""

from collections.abc import Sequence, Set

import msgspec
from msgspec.structs import replace

from podfit.api.batch.v1.types import CronJob, CronJobStatus, Job
from podfit.decide.workload.events import NORMAL, WARNING, WorkloadEvent
from podfit.decide.workload.job.state import COMPLETE, FAILED, is_over, said


class Seen(msgspec.Struct, frozen=True):
    """`running` are the jobs that the status names and that are not over."""

    status: CronJobStatus
    running: tuple[Job, ...] = ()
    told: tuple[WorkloadEvent, ...] = ()


def seen(cron: CronJob, jobs: Sequence[Job], forgotten: Set[str] = frozenset()) -> Seen:
    """`jobs` are all that are the cron job's; one that its status names and that is not among them is gone.

    Of the `forgotten`, UIDs of jobs that were just deleted because they were too many, nothing is told.
    """
    status, known, active, running = cron.status, {job.metadata.uid: job for job in jobs}, [], []
    listed = {reference.uid for reference in status.active}
    told = [_unexpected(job) for job in jobs if job.metadata.uid not in listed and not is_over(job)]
    for reference in status.active:
        if reference.uid in forgotten:
            continue
        job = known.get(reference.uid)
        if job is None:
            told.append(WorkloadEvent(NORMAL, "MissingJob", f"Active job went missing: {reference.name}"))
        elif not is_over(job):
            active.append(reference)
            running.append(job)
        else:
            kind = COMPLETE if said(job, COMPLETE) is not None else FAILED
            text = f"Saw completed job: {reference.name}, condition: {kind}"
            told.append(WorkloadEvent(NORMAL, "SawCompletedJob", text))
    for job in jobs:
        status = _with_success(status, job)
    return Seen(replace(status, active=tuple(active)), tuple(running), tuple(told))


def _unexpected(job: Job) -> WorkloadEvent:
    text = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
    return WorkloadEvent(WARNING, "UnexpectedJob", text)


def _with_success(status: CronJobStatus, job: Job) -> CronJobStatus:
    ended = job.status.completion_time
    if said(job, COMPLETE) is None or ended is None or (status.last_successful_time or "") >= ended:
        return status
    return replace(status, last_successful_time=ended)
