"""Statuses of jobs: a controller may not say what contradicts itself, nor take back that a job has ended."""

from collections.abc import Iterable

from podfit.api.batch.v1.types import Job, JobCondition
from podfit.api.batch.v1.validation.job_policies import count_indexes, without_value
from podfit.api.meta.validation.statuses import counts
from podfit.core.fields import FieldError, duplicate, invalid, required
from podfit.core.times import parse_time

_CONDITIONS = "status.conditions"


def _is_true(conditions: Iterable[JobCondition], sort: str) -> bool:
    return any(condition.type == sort and condition.status == "True" for condition in conditions)


def validate_job_status(new: Job, old: Job) -> list[FieldError]:
    counted = counts(new.status, "active", "succeeded", "failed", "ready", "terminating")
    return counted + _uncounted(new) + _ends(new) + _times(new) + _finished(new) + _indexes(new) + _taken_back(new, old)


def _uncounted(job: Job) -> list[FieldError]:
    pods = job.status.uncounted_terminated_pods
    errors: list[FieldError] = []
    seen: set[str] = set()
    for name, uids in (("succeeded", pods.succeeded), ("failed", pods.failed)) if pods else ():
        for index, uid in enumerate(uids):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _ends(job: Job) -> list[FieldError]:
    """Which conditions go together."""
    held = {condition.type for condition in job.status.conditions if condition.status == "True"}
    texts = []
    if {"Complete", "Failed"} <= held:
        texts.append("cannot set Complete=True and Failed=true conditions")
    if {"Complete", "FailureTarget"} <= held:
        texts.append("cannot set Complete=True and FailureTarget=true conditions")
    if "Failed" in held and "FailureTarget" not in held:
        texts.append("cannot set Failed=True condition without the FailureTarget=true condition")
    if "Complete" in held and "SuccessCriteriaMet" not in held:
        texts.append("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    if {"SuccessCriteriaMet", "Failed"} <= held:
        texts.append("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if {"SuccessCriteriaMet", "FailureTarget"} <= held:
        texts.append("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    return [without_value(_CONDITIONS, text) for text in texts]


def _times(job: Job) -> list[FieldError]:
    status, path = job.status, "status.completionTime"
    complete, ended, begun = _is_true(status.conditions, "Complete"), status.completion_time, status.start_time
    errors = []
    if ended is not None and not complete:
        text = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid(path, ended, text))
    if ended is None and complete:
        errors.append(required(path, "completionTime is required for Complete jobs"))
    if ended is not None and begun is not None and parse_time(ended) < parse_time(begun):
        errors.append(invalid(path, ended, "must be equal to or after `startTime`"))
    return errors


def _finished(job: Job) -> list[FieldError]:
    status = job.status
    errors = []
    if any(_is_true(status.conditions, sort) for sort in ("Complete", "Failed")):
        pods = status.uncounted_terminated_pods
        if status.active > 0:
            errors.append(invalid("status.active", status.active, "active>0 is invalid for finished job"))
        if status.start_time is None:
            errors.append(required("status.startTime", "startTime is required for finished job"))
        if pods is not None and (pods.failed or pods.succeeded):
            path = "status.uncountedTerminatedPods"
            errors.append(invalid(path, pods, "must be empty for finished job"))
        if status.terminating:
            text = "terminating>0 is invalid for finished job"
            errors.append(invalid("status.terminating", status.terminating, text))
    if status.ready is not None and status.ready > status.active:
        errors.append(invalid("status.ready", status.ready, "cannot set more ready pods than active"))
    return errors


def _indexes(job: Job) -> list[FieldError]:
    spec, done, failed = job.spec, job.status.completed_indexes, job.status.failed_indexes
    errors = []
    if done and spec.completion_mode != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid("status.completedIndexes", done, text))
    if failed is not None and spec.backoff_limit_per_index is None:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, text))
    for name, text in (("completedIndexes", done), ("failedIndexes", failed or "")):
        try:
            count_indexes(text, spec.completions if spec.completions is not None else 2**31)
        except ValueError as error:
            errors.append(invalid(f"status.{name}", text, f"error parsing {name}: {error}"))
    return errors


def _taken_back(new: Job, old: Job) -> list[FieldError]:
    after, before = new.status, old.status
    errors = [
        without_value(_CONDITIONS, f"cannot disable the terminal {sort}=True condition")
        for sort in ("Failed", "Complete", "FailureTarget")
        if _is_true(before.conditions, sort) and not _is_true(after.conditions, sort)
    ]
    if after.failed < before.failed:
        errors.append(invalid("status.failed", after.failed, "cannot decrease the failed counter"))
    if after.succeeded < before.succeeded:
        errors.append(invalid("status.succeeded", after.succeeded, "cannot decrease the succeeded counter"))
    if None not in (after.completion_time, before.completion_time) and after.completion_time != before.completion_time:
        errors.append(invalid("status.completionTime", after.completion_time, "field is immutable"))
    if before.start_time not in (None, after.start_time) and not new.spec.suspend:
        errors.append(required("status.startTime", "startTime cannot be removed for unsuspended job"))
    if _is_true(before.conditions, "SuccessCriteriaMet") and not _is_true(after.conditions, "SuccessCriteriaMet"):
        errors.append(without_value(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition"))
    return errors
