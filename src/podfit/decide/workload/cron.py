"""The next step of a cron job: whether a job is due, and which running and old jobs go.

Of runs that were missed only the latest is made up for, and only within the starting deadline.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.meta.owners import reference_to
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.cron import Schedule, parse, zone_of
from podfit.core.schedules import MINUTE, next_time
from podfit.core.times import format_time, parse_time, seconds_later
from podfit.decide.workload.events import WorkloadEvent
from podfit.decide.workload.job.state import COMPLETE, FAILED, said

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
FORBID, REPLACE = "Forbid", "Replace"
MANY = 100
"""Missed runs of which people are told."""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""No run is older: whoever writes the status can name any year."""
LATER = 0.1
"""Seconds after the time at which it is looked again, so that it has passed."""


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """`at`: the run to start now. `again`: seconds until the next look. `end`: jobs that run and are to be replaced."""

    at: datetime | None = None
    again: float | None = None
    end: tuple[Job, ...] = ()
    told: tuple[WorkloadEvent, ...] = ()


def due(cron: CronJob, running: Sequence[Job], now: datetime) -> Due:
    if cron.spec.suspend:
        return Due()
    name = cron.spec.time_zone or zone_of(cron.spec.schedule) or "UTC"
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return Due(
            told=(WorkloadEvent("Warning", "UnknownTimeZone", f'invalid timeZone: "{name}": unknown time zone {name}'),)
        )
    try:
        schedule = parse(cron.spec.schedule)
    except ValueError as error:
        text = f'unparseable schedule: "{cron.spec.schedule}" : {error}'
        return Due(told=(WorkloadEvent("Warning", "UnparseableSchedule", text),))
    return _due(cron, schedule, zone, running, now)


def _due(cron: CronJob, schedule: Schedule, zone: ZoneInfo, running: Sequence[Job], now: datetime) -> Due:
    following = next_time(schedule, now, zone)
    again = (following - now).total_seconds() + LATER if following is not None else None
    earliest = _earliest(cron, now)
    at, missed = latest(schedule, earliest, now, zone)
    told = [_too_many()] if missed > MANY else []
    if at is None:
        return Due(again=again, told=tuple(told))
    deadline = cron.spec.starting_deadline_seconds
    if deadline is not None and seconds_later(at, deadline) < now:
        told.append(WorkloadEvent("Warning", "MissSchedule", f"Missed scheduled time to start a job: {_rfc1123(at)}"))
        return Due(again=again, told=tuple(told))
    if cron.status.last_schedule_time == format_time(at) or any(
        job.metadata.name == name_at(cron, at) for job in running
    ):
        return Due(again=again, told=tuple(told))
    if running and cron.spec.concurrency_policy == FORBID:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return Due(again=again, told=(*told, WorkloadEvent("Normal", "JobAlreadyActive", text)))
    replaced = tuple(running) if cron.spec.concurrency_policy == REPLACE else ()
    return Due(at=at, again=again, end=replaced, told=tuple(told))


def _earliest(cron: CronJob, now: datetime) -> datetime:
    """Runs up to here are over, or are not made up for."""
    told = parse_time(cron.status.last_schedule_time or cron.metadata.creation_timestamp or format_time(now))
    since = min(max(told, _NEVER), now)
    deadline = cron.spec.starting_deadline_seconds
    return max(since, seconds_later(now, -deadline)) if deadline is not None else since


def latest(schedule: Schedule, after: datetime, now: datetime, zone: ZoneInfo) -> tuple[datetime | None, int]:
    """The last run that is due by now, and about how many were."""
    first = next_time(schedule, after, zone)
    if first is None or first > now:
        return None, 0
    second = next_time(schedule, first, zone)
    if second is None or second > now:
        return first, 1
    gap = second - first
    missed, back = int((now - first) / gap) + 1, gap
    while (found := next_time(schedule, max(after, now - back), zone)) is None or found > now:
        back *= 2  # from ever further back, until there is one
    return _last(schedule, found, now, zone), missed


def _last(schedule: Schedule, found: datetime, now: datetime, zone: ZoneInfo) -> datetime:
    """The last run by `now`, of which `found` is one. By halves, as there may be one a minute for a year."""
    until = now
    while until - found > MINUTE:
        later = next_time(schedule, found + (until - found) / 2, zone)
        if later is not None and later <= now:
            found = later
        else:
            until = found + (until - found) / 2
    later = next_time(schedule, found, zone)
    return later if later is not None and later <= now else found


def _too_many() -> WorkloadEvent:
    text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    return WorkloadEvent("Warning", "TooManyMissedTimes", text)


def _rfc1123(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S %z")


def name_at(cron: CronJob, at: datetime) -> str:
    """The name of the job of a run: the same for whoever makes it."""
    return f"{cron.metadata.name}-{int(at.timestamp()) // 60}"


def job_at(cron: CronJob, at: datetime) -> Job:
    template = cron.spec.job_template
    stamp = at.astimezone(ZoneInfo(cron.spec.time_zone or "UTC")).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Job(
        metadata=ObjectMeta(
            name=name_at(cron, at),
            namespace=cron.metadata.namespace,
            labels=dict(template.metadata.labels),
            annotations={**template.metadata.annotations, SCHEDULED_AT: stamp},
            owner_references=(reference_to(cron),),
        ),
        spec=template.spec,
    )


def to_forget(cron: CronJob, jobs: Sequence[Job]) -> list[Job]:
    """Jobs that are over and more than are kept: the oldest."""
    spec, found = cron.spec, list[Job]()
    for kind, limit in ((COMPLETE, spec.successful_jobs_history_limit), (FAILED, spec.failed_jobs_history_limit)):
        over = sorted((job for job in jobs if said(job, kind) is not None), key=_begun)
        if limit is not None and len(over) > limit:
            found += over[: len(over) - limit]
    return found


def _begun(job: Job) -> tuple[bool, str, str]:
    """Those that never began last."""
    started = job.status.start_time
    return started is None, started or "", job.metadata.name
