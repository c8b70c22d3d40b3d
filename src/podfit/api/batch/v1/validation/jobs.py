"""Jobs: what a new one has to be, and what of it may change once it is there."""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.batch.v1.types import NAME_LABELS, UID_LABELS, Job, JobCondition, JobSpec
from podfit.api.batch.v1.validation.job_policies import (
    count_indexes,
    validate_failure_policy,
    validate_success_policy,
    without_value,
)
from podfit.api.core.v1.pods.affinity import Affinity
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.validation.templates import matches, unmatched, validate_template
from podfit.api.meta.base import Object
from podfit.api.meta.selectors import holds, is_usable, requirements
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import immutable, nonnegative, validate_selector
from podfit.api.meta.validation.rules import Rules
from podfit.api.meta.validation.statuses import counts
from podfit.core.fields import FieldError, duplicate, invalid, required, too_long, unsupported
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


_MODES = ("NonIndexed", "Indexed")
_RESTARTS = ("OnFailure", "Never")
_REPLACEMENT = ("Failed", "TerminatingOrFailed")
_MANY, _FEW = 100_000, 10_000
_LONGEST_MANAGER = 63
_DOMAIN_PATH = 'must be a domain-prefixed path (such as "acme.io/foo")'


def validate_job(job: Job) -> list[FieldError]:
    spec, name = job.spec, job.metadata.name
    errors = _generated(job) + validate_job_spec(spec, "spec") + _selector(spec, "spec")
    if spec.completion_mode == "Indexed" and spec.completions:
        highest = f"{name}-{spec.completions - 1}"
        if names.dns_label(highest):
            text = f"will not able to create pod with invalid DNS label: {highest}"
            errors.append(invalid("metadata.name", name, text))
    return errors


def _generated(job: Job) -> list[FieldError]:
    """Without a selector of its author's own, a job's pods bear its uid and its name, and its selector finds them."""
    spec, meta = job.spec, job.metadata
    if spec.manual_selector or spec.selector is None:
        return []
    path, labels = "spec.template.metadata.labels", spec.template.metadata.labels
    wanted = {UID_LABELS[1]: meta.uid, NAME_LABELS[1]: meta.name, UID_LABELS[0]: meta.uid, NAME_LABELS[0]: meta.name}
    errors = [] if meta.uid else [required("metadata.uid")]
    for key, value in wanted.items():
        if key not in labels:
            errors.append(required(f"{path}[{key}]", f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(invalid(f"{path}[{key}]", dict(sorted(labels.items())), f"must be '{value}'"))
    if is_usable(spec.selector) and not holds(requirements(spec.selector), wanted):
        errors.append(invalid("spec.selector", _sorted(spec.selector), "`selector` not auto-generated"))
    return errors


def _sorted(selector: LabelSelector) -> LabelSelector:
    return replace(selector, match_labels=dict(sorted(selector.match_labels.items())))


def _selector(spec: JobSpec, path: str) -> list[FieldError]:
    if spec.selector is None:
        return [required(f"{path}.selector"), unmatched(spec.template, f"{path}.template")]
    errors = validate_selector(spec.selector, f"{path}.selector")
    return errors if matches(spec.selector, spec.template) else [*errors, unmatched(spec.template, f"{path}.template")]


def validate_job_spec(spec: JobSpec, path: str) -> list[FieldError]:
    """Of a job or of the jobs that a cron job will make; without the selector."""
    errors = _numbers(spec, path) + _manager(spec, path) + _mode(spec, path)
    if spec.pod_failure_policy is not None:
        errors += validate_failure_policy(spec, f"{path}.podFailurePolicy")
    if spec.success_policy is not None:
        errors += (
            validate_success_policy(spec, f"{path}.successPolicy")
            if spec.completion_mode == "Indexed"
            else [invalid(f"{path}.successPolicy", spec.success_policy, "requires indexed completion mode")]
        )
    supported = _REPLACEMENT if spec.pod_failure_policy is None else _REPLACEMENT[:1]
    if spec.pod_replacement_policy is not None and spec.pod_replacement_policy not in supported:
        errors.append(unsupported(f"{path}.podReplacementPolicy", spec.pod_replacement_policy, supported))
    errors += validate_template(spec.template, f"{path}.template")
    return errors + _restarts(spec, f"{path}.template.spec.restartPolicy")


def _numbers(spec: JobSpec, path: str) -> list[FieldError]:
    errors = []
    for value, name in (
        (spec.parallelism, "parallelism"),
        (spec.completions, "completions"),
        (spec.active_deadline_seconds, "activeDeadlineSeconds"),
        (spec.backoff_limit, "backoffLimit"),
        (spec.ttl_seconds_after_finished, "ttlSecondsAfterFinished"),
        (spec.backoff_limit_per_index, "backoffLimitPerIndex"),
        (spec.max_failed_indexes, "maxFailedIndexes"),
    ):
        errors += nonnegative(value, f"{path}.{name}")
    if spec.max_failed_indexes is not None and spec.backoff_limit_per_index is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    return errors


def _manager(spec: JobSpec, path: str) -> list[FieldError]:
    path, name = f"{path}.managedBy", spec.managed_by
    if name is None:
        return []
    if not name:
        return [required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or not domain or not rest:
        errors = [invalid(path, name, _DOMAIN_PATH)]
    else:
        errors = [invalid(path, domain, text) for text in names.dns_subdomain(domain)]
    return [*errors, too_long(path, _LONGEST_MANAGER)] if len(name) > _LONGEST_MANAGER else errors


def _mode(spec: JobSpec, path: str) -> list[FieldError]:
    mode, per_index, failed = spec.completion_mode, spec.backoff_limit_per_index, spec.max_failed_indexes
    errors = []
    if mode is not None and mode not in _MODES:
        errors.append(unsupported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed":
        errors += _indexed(spec, path)
    if mode in (None, "NonIndexed"):
        given = (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed))
        text = "requires indexed completion mode"
        errors += [invalid(f"{path}.{name}", value, text) for name, value in given if value is not None]
    return errors


def _indexed(spec: JobSpec, path: str) -> list[FieldError]:
    parallelism, failed = spec.parallelism or 0, spec.max_failed_indexes
    errors = []
    if spec.completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _MANY:
        text = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, text))
    if failed is not None and spec.completions is not None and failed > spec.completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > _MANY:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MANY}"))
    if (spec.completions or 0) <= _MANY or spec.backoff_limit_per_index is None:
        return errors
    text = f"must be less than or equal to {_FEW} when completions are above {_MANY} and used with backoff limit per"
    if failed is None:
        errors.append(required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_MANY}"))
    if parallelism > _FEW:
        errors.append(invalid(f"{path}.parallelism", parallelism, f"{text} index"))
    if failed is not None and failed > _FEW:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, f"{text} index"))
    return errors


def _restarts(spec: JobSpec, path: str) -> list[FieldError]:
    policy = spec.template.spec.restart_policy
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in _RESTARTS:
        return [unsupported(path, policy, _RESTARTS)]
    if spec.pod_failure_policy is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def validate_job_update(new: Job, old: Job) -> list[FieldError]:
    after, before = new.spec, old.spec
    errors = validate_job_spec(after, "spec") + _selector(after, "spec") + _completions(after, before)
    errors += immutable(after.selector, before.selector, "spec.selector")
    errors += _template(new, old)
    for attribute, name in (
        ("completion_mode", "completionMode"),
        ("pod_failure_policy", "podFailurePolicy"),
        ("backoff_limit_per_index", "backoffLimitPerIndex"),
        ("managed_by", "managedBy"),
        ("success_policy", "successPolicy"),
    ):
        errors += immutable(getattr(after, attribute), getattr(before, attribute), f"spec.{name}")
    return errors


def _completions(new: JobSpec, old: JobSpec) -> list[FieldError]:
    path = "spec.completions"
    if new.completion_mode != "Indexed":
        return immutable(new.completions, old.completions, path)
    if new.completions in (None, old.completions, new.parallelism):
        return []
    return [invalid(path, new.completions, "can only be modified in tandem with spec.parallelism")]


def _template(new: Job, old: Job) -> list[FieldError]:
    """Pods of a job are alike; until a suspended job has begun, where they run and what they get may change."""
    after, before = new.spec.template, old.spec.template
    if not old.spec.suspend:
        return immutable(after, before, "spec.template")
    if old.status.start_time is None:
        before = _rescheduled(before, after)
    return immutable(after.spec, _resized(before.spec, after.spec), "spec.template.spec")


def _rescheduled(before: PodTemplateSpec, after: PodTemplateSpec) -> PodTemplateSpec:
    """The former template with the new one's scheduling directives."""
    wanted = after.spec
    spec = replace(
        before.spec,
        affinity=_affinity(before.spec.affinity, wanted.affinity),
        node_selector=wanted.node_selector,
        tolerations=wanted.tolerations,
        scheduling_gates=wanted.scheduling_gates,
    )
    meta = replace(before.metadata, annotations=after.metadata.annotations, labels=after.metadata.labels)
    return replace(before, metadata=meta, spec=spec)


def _affinity(before: Affinity | None, after: Affinity | None) -> Affinity | None:
    """The former affinity with the new one's choice of nodes; an empty one is as good as none."""
    mixed = replace(before or Affinity(), node_affinity=after.node_affinity if after else None)
    return after if mixed == (after or Affinity()) else mixed


def _resized(before: PodSpec, after: PodSpec) -> PodSpec:
    """The former pod with the new one's resources."""
    return replace(
        before,
        containers=_with_resources(before.containers, after.containers),
        init_containers=_with_resources(before.init_containers, after.init_containers),
    )


def _with_resources(before: tuple[Container, ...], after: tuple[Container, ...]) -> tuple[Container, ...]:
    if len(before) != len(after):
        return before
    pairs = zip(before, after, strict=True)
    return tuple(replace(old, resources=new.resources) if old.name == new.name else old for old, new in pairs)


RULES: dict[type[Object], Rules] = {
    Job: Rules(create=validate_job, update=validate_job_update, new_first=True, status=validate_job_status)
}
