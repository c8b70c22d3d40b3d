"""Columns of `kubectl get` for jobs and cron jobs."""

from typing import Any

from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.core.v1.replication.columns import PODS, SELECTOR, pods_of, selected
from podfit.api.meta.columns import AGE, NAME, NONE, age, since
from podfit.api.meta.resource_info import Column
from podfit.core.durations import human_duration
from podfit.core.times import parse_time

JOB = (
    NAME,
    Column("Status", description="What has become of the job."),
    Column("Completions", description="Pods that have succeeded, of those needed."),
    Column("Duration", description="How long the job has taken."),
    AGE,
    *PODS,
    SELECTOR,
)
_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def job_row(job: Job, now: str) -> list[Any]:
    return [
        job.metadata.name,
        _state(job),
        _completions(job),
        _duration(job, now),
        age(job, now),
        *pods_of(job.spec.template),
        selected(job.spec.selector),
    ]


def _state(job: Job) -> str:
    held = {condition.type for condition in job.status.conditions if condition.status == "True"}
    for sort, state in _STATES[:2]:
        if sort in held:
            return state
    if job.metadata.deletion_timestamp:
        return "Terminating"
    return next((state for sort, state in _STATES[2:] if sort in held), "Running")


def _completions(job: Job) -> str:
    spec, done = job.spec, job.status.succeeded
    if spec.completions is not None:
        return f"{done}/{spec.completions}"
    parallel = spec.parallelism or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: Job, now: str) -> str:
    begun, ended = job.status.start_time, job.status.completion_time
    if begun is None:
        return ""
    try:
        return human_duration((parse_time(ended or now) - parse_time(begun)).total_seconds())
    except ValueError:
        return ""


CRON_JOB = (
    NAME,
    Column("Schedule", description="When jobs are made."),
    Column("Timezone", description="The zone that the schedule is in."),
    Column("Suspend", "boolean", description="Whether no jobs are made for now."),
    Column("Active", "integer", description="Jobs of it that run."),
    Column("Last Schedule", description="Time since a job was made last."),
    AGE,
    *PODS,
    SELECTOR,
)


def cron_job_row(cron: CronJob, now: str) -> list[Any]:
    spec, status = cron.spec, cron.status
    last = since(status.last_schedule_time, now) if status.last_schedule_time else NONE
    inside = spec.job_template.spec
    return [
        cron.metadata.name,
        spec.schedule,
        spec.time_zone or NONE,
        str(bool(spec.suspend)),
        len(status.active),
        last,
        age(cron, now),
        *pods_of(inside.template),
        selected(inside.selector),
    ]
