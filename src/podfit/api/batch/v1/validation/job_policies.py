"""Validation of a job's pod failure policy and success policy."""

from collections.abc import Collection

from podfit.api.batch.v1.types import (
    JobSpec,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import nonnegative
from podfit.core.fields import FieldError, duplicate, invalid, required, too_long, too_many, unsupported

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MOST_RULES, _MOST_CODES, _MOST_INDEXES = 20, 255, 64 * 1024


def without_value(path: str, text: str) -> FieldError:
    return FieldError(path, "Invalid value", text)


def _one_of(values: Collection[str]) -> str:
    listed = " ".join(f'"{value}"' for value in values)
    return f"valid values: [{listed}]"


def validate_failure_policy(spec: JobSpec, path: str) -> list[FieldError]:
    assert spec.pod_failure_policy is not None
    rules, inside = spec.pod_failure_policy.rules, spec.template.spec
    errors = [too_many(f"{path}.rules", len(rules), _MOST_RULES)] if len(rules) > _MOST_RULES else []
    containers = {container.name for container in all_containers(inside)}
    for index, rule in enumerate(rules):
        errors += _failure_rule(spec, rule, f"{path}.rules[{index}]", containers)
    return errors


def _failure_rule(
    spec: JobSpec, rule: PodFailurePolicyRule, path: str, containers: Collection[str]
) -> list[FieldError]:
    errors = []
    if not rule.action:
        errors.append(required(f"{path}.action", _one_of(_ACTIONS)))
    elif rule.action not in _ACTIONS:
        errors.append(unsupported(f"{path}.action", rule.action, _ACTIONS))
    elif rule.action == "FailIndex" and spec.backoff_limit_per_index is None:
        text = "requires the backoffLimitPerIndex to be set"
        errors.append(invalid(f"{path}.action", rule.action, text))
    codes, conditions = rule.on_exit_codes, rule.on_pod_conditions
    if codes is not None:
        errors += _exit_codes(codes, f"{path}.onExitCodes", containers)
    errors += _conditions(conditions, f"{path}.onPodConditions")
    if codes is not None and conditions:
        errors.append(without_value(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not conditions:
        errors.append(without_value(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def _conditions(patterns: tuple[PodFailurePolicyOnPodConditionsPattern, ...], path: str) -> list[FieldError]:
    errors = [too_many(path, len(patterns), _MOST_RULES)] if len(patterns) > _MOST_RULES else []
    for index, pattern in enumerate(patterns):
        where = f"{path}[{index}]"
        errors += [invalid(f"{where}.type", pattern.type, text) for text in names.qualified(pattern.type)]
        if not pattern.status:
            errors.append(required(f"{where}.status", _one_of(_STATUSES)))
        elif pattern.status not in _STATUSES:
            errors.append(unsupported(f"{where}.status", pattern.status, _STATUSES))
    return errors


def _exit_codes(
    codes: PodFailurePolicyOnExitCodesRequirement, path: str, containers: Collection[str]
) -> list[FieldError]:
    errors = []
    if not codes.operator:
        errors.append(required(f"{path}.operator", _one_of(_OPERATORS)))
    elif codes.operator not in _OPERATORS:
        errors.append(unsupported(f"{path}.operator", codes.operator, _OPERATORS))
    if codes.container_name is not None and codes.container_name not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", codes.container_name, text))
    path, values = f"{path}.values", codes.values
    if not values:
        errors.append(invalid(path, None, "at least one value is required"))
    elif len(values) > _MOST_CODES:
        errors.append(too_many(path, len(values), _MOST_CODES))
    for index, value in enumerate(values):
        where = f"{path}[{index}]"
        if value == 0 and codes.operator == "In":
            errors.append(invalid(where, value, "must not be 0 for the In operator"))
        if value in values[:index]:
            errors.append(duplicate(where, value))
    if list(values) != sorted(values):
        errors.append(invalid(path, list(values), "must be ordered"))
    return errors


def validate_success_policy(spec: JobSpec, path: str) -> list[FieldError]:
    assert spec.success_policy is not None
    path, rules = f"{path}.rules", spec.success_policy.rules
    errors = []
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(path, text))
    if len(rules) > _MOST_RULES:
        errors.append(too_many(path, len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        errors += _success_rule(rule, spec.completions or 0, f"{path}[{index}]")
    return errors


def _success_rule(rule: SuccessPolicyRule, completions: int, path: str) -> list[FieldError]:
    count, indexes = rule.succeeded_count, rule.succeeded_indexes
    errors, total = [], 0
    if count is None and indexes is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if len(indexes) > _MOST_INDEXES:
            errors.append(too_long(where, _MOST_INDEXES))
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            errors.append(invalid(where, indexes, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        where = f"{path}.succeededCount"
        errors += nonnegative(count, where)
        if count > completions:
            text = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(where, count, text))
        if indexes is not None and count > total:
            text = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes "
            errors.append(invalid(where, count, f"{text}field)"))
    return errors


def count_indexes(text: str, completions: int) -> int:
    """How many indexes `0,2-4` names. ValueError says why it names none of a job with so many completions."""
    total, last = 0, -1
    for fragment in text.split(",") if text else ():
        first, *more = fragment.split("-")
        if len(more) > 1:
            rule = "an index interval can have at most two parts separated by '-'"
            raise ValueError(f'the fragment "{fragment}" violates the requirement that {rule}')
        low = _index(first, completions)
        high = _index(more[0], completions) if more else low
        if more and low >= high:
            raise ValueError(f"non-increasing order, previous: {low}, current: {high}")
        if low <= last:
            raise ValueError(f"non-increasing order, previous: {last}, current: {low}")
        total, last = total + high - low + 1, high
    return total


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)
