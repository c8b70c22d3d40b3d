"""Daemon sets and controller revisions."""

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet, DaemonSetUpdateStrategy, RollingUpdateDaemonSet
from podfit.api.core.v1.pods.validation.templates import (
    always_restarted,
    at_most_all,
    int_or_percent,
    matches,
    number_of,
    unmatched,
    validate_template,
)
from podfit.api.meta.base import Object
from podfit.api.meta.selectors import is_empty
from podfit.api.meta.validation.metadata import immutable, nonnegative, validate_selector
from podfit.api.meta.validation.rules import Rules
from podfit.api.meta.validation.statuses import collisions, counts
from podfit.core.fields import FieldError, invalid, required, unsupported

_STRATEGIES = ("RollingUpdate", "OnDelete")


def validate_daemon_set(daemons: DaemonSet) -> list[FieldError]:
    spec, path = daemons.spec, "spec.template"
    errors = validate_selector(spec.selector, "spec.selector")
    if not matches(spec.selector, spec.template):
        errors.append(unmatched(spec.template, path))
    if spec.selector is not None and is_empty(spec.selector):
        errors.append(invalid("spec.selector", spec.selector, "empty selector is invalid for daemonset"))
    errors += validate_template(spec.template, path)
    errors += always_restarted(spec.template.spec, f"{path}.spec", owner="DaemonSet")
    errors += nonnegative(spec.min_ready_seconds, "spec.minReadySeconds")
    errors += _strategy(spec.update_strategy, "spec.updateStrategy")
    return errors + nonnegative(spec.revision_history_limit, "spec.revisionHistoryLimit")


def _strategy(strategy: DaemonSetUpdateStrategy, path: str) -> list[FieldError]:
    rolling = strategy.rolling_update
    if strategy.type not in _STRATEGIES:
        shown = rolling and {"MaxUnavailable": rolling.max_unavailable, "MaxSurge": rolling.max_surge}
        return [unsupported(path, {"Type": strategy.type, "RollingUpdate": shown}, _STRATEGIES)]
    if strategy.type == "OnDelete":
        return []
    path = f"{path}.rollingUpdate"
    return [required(path)] if rolling is None else _rolling(rolling, path)


def _rolling(rolling: RollingUpdateDaemonSet, path: str) -> list[FieldError]:
    unavailable, surge = rolling.max_unavailable, rolling.max_surge
    below, above = f"{path}.maxUnavailable", f"{path}.maxSurge"
    errors = int_or_percent(unavailable, below) + int_or_percent(surge, above)
    errors += at_most_all(unavailable, below) + at_most_all(surge, above)
    if number_of(unavailable) and number_of(surge):
        errors.append(invalid(above, surge, "may not be set when maxUnavailable is non-zero"))
    elif not number_of(unavailable) and not number_of(surge):
        errors.append(required(below, "cannot be 0 when maxSurge is 0"))
    return errors


def validate_daemon_set_update(new: DaemonSet, old: DaemonSet) -> list[FieldError]:
    return immutable(new.spec.selector, old.spec.selector, "spec.selector") + validate_daemon_set(new)


def validate_daemon_set_status(new: DaemonSet, old: DaemonSet) -> list[FieldError]:
    errors = counts(
        new.status,
        "current_number_scheduled",
        "number_misscheduled",
        "desired_number_scheduled",
        "number_ready",
        "observed_generation",
        "updated_number_scheduled",
        "number_available",
        "number_unavailable",
        "collision_count",
    )
    return errors + collisions(new.status.collision_count, old.status.collision_count)


def validate_revision(revision: ControllerRevision) -> list[FieldError]:
    errors = [] if revision.data is not None else [required("data", "data is mandatory")]
    return errors + nonnegative(revision.revision, "revision")


def validate_revision_update(new: ControllerRevision, old: ControllerRevision) -> list[FieldError]:
    return validate_revision(new) + immutable(new.data, old.data, "data")


RULES: dict[type[Object], Rules] = {
    DaemonSet: Rules(create=validate_daemon_set, update=validate_daemon_set_update, status=validate_daemon_set_status),
    ControllerRevision: Rules(create=validate_revision, update=validate_revision_update),
}
