"""Cron jobs."""

import re
import zoneinfo

from podfit.api.batch.v1.types import CronJob, CronJobSpec
from podfit.api.batch.v1.validation.jobs import validate_job_spec
from podfit.api.meta.base import Object
from podfit.api.meta.validation.metadata import nonnegative
from podfit.api.meta.validation.rules import Rules
from podfit.core.cron import objection
from podfit.core.fields import FieldError, invalid, required, unsupported

_POLICIES = ("Allow", "Forbid", "Replace")
_LONGEST_NAME = 52  # its jobs get eleven letters more
_ZONE_PART = re.compile(r"[A-Za-z._0-9+-]{1,14}")


def validate_cron_job(cron: CronJob) -> list[FieldError]:
    name = cron.metadata.name
    errors = _spec(cron.spec, None)
    if len(name) > _LONGEST_NAME:
        errors.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters"))
    return errors


def validate_cron_job_update(new: CronJob, old: CronJob) -> list[FieldError]:
    return _spec(new.spec, old.spec)


def _spec(spec: CronJobSpec, old: CronJobSpec | None) -> list[FieldError]:
    errors = _schedule(spec, "spec.schedule", zoned=old is not None and "TZ" in old.schedule)
    errors += nonnegative(spec.starting_deadline_seconds, "spec.startingDeadlineSeconds")
    if old is None or old.time_zone != spec.time_zone:
        errors += _zone(spec.time_zone, "spec.timeZone")
    if not spec.concurrency_policy:
        errors.append(required("spec.concurrencyPolicy"))
    elif spec.concurrency_policy not in _POLICIES:
        errors.append(unsupported("spec.concurrencyPolicy", spec.concurrency_policy, _POLICIES))
    errors += _template(spec, "spec.jobTemplate.spec")
    errors += nonnegative(spec.successful_jobs_history_limit, "spec.successfulJobsHistoryLimit")
    return errors + nonnegative(spec.failed_jobs_history_limit, "spec.failedJobsHistoryLimit")


def _schedule(spec: CronJobSpec, path: str, *, zoned: bool) -> list[FieldError]:
    """`zoned`: a zone within the schedule, which was allowed once, may stay."""
    schedule = spec.schedule
    if not schedule:
        return [required(path)]
    why = objection(schedule)
    errors = [invalid(path, schedule, why)] if why else []
    if "TZ" in schedule and not zoned:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid(path, schedule, text))
    elif "TZ" in schedule and spec.time_zone is not None:
        text = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(invalid(path, schedule, text))
    return errors


def _zone(zone: str | None, path: str) -> list[FieldError]:
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = [invalid(path, zone, f"unknown time zone {zone}")]
    parts = zone.split("/")
    if not all(_ZONE_PART.fullmatch(part) and not part.startswith("-") and part not in (".", "..") for part in parts):
        return unknown
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(path, zone, text)]
    return [] if _is_known(zone) else unknown


def _is_known(zone: str) -> bool:
    """The machine's table of zones, or that of the package `tzdata`."""
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _template(spec: CronJobSpec, path: str) -> list[FieldError]:
    job = spec.job_template.spec
    errors = validate_job_spec(job, path)
    if job.selector is not None:
        errors.append(invalid(f"{path}.selector", job.selector, "`selector` will be auto-generated"))
    if job.manual_selector:
        errors.append(unsupported(f"{path}.manualSelector", True, ("nil", "false")))
    return errors


RULES: dict[type[Object], Rules] = {CronJob: Rules(create=validate_cron_job, update=validate_cron_job_update)}
