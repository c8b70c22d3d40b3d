"""Deployments and replica sets."""

from podfit.api.apps.v1.deployments import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.validation.templates import (
    always_restarted,
    at_most_all,
    int_or_percent,
    matches,
    number_of,
    unmatched,
    validate_own_selector,
    validate_template,
)
from podfit.api.meta.base import Object
from podfit.api.meta.selectors import is_usable
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.meta.validation.metadata import immutable, nonnegative
from podfit.api.meta.validation.rules import Rules
from podfit.api.meta.validation.statuses import at_most_replicas, collisions, counts
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported

_STRATEGIES = ("Recreate", "RollingUpdate")
_MORE_AVAILABLE = "cannot be greater than readyReplicas"


def validate_deployment(deployment: Deployment) -> list[FieldError]:
    spec = deployment.spec
    errors = nonnegative(spec.replicas, "spec.replicas")
    errors += _pods(spec.selector, spec.template)
    errors += _strategy(spec.strategy, "spec.strategy")
    errors += nonnegative(spec.min_ready_seconds, "spec.minReadySeconds")
    errors += nonnegative(spec.revision_history_limit, "spec.revisionHistoryLimit")
    return errors + _deadline(spec)


def _pods(selector: LabelSelector | None, template: PodTemplateSpec) -> list[FieldError]:
    path = "spec.selector"
    errors = validate_own_selector(selector, path, owner="deployment")
    if not is_usable(selector):
        return [*errors, invalid(path, selector, "invalid label selector")]
    path = "spec.template"
    if not matches(selector, template):
        errors.append(unmatched(template, path))
    errors += validate_template(template, path)
    return errors + always_restarted(template.spec, f"{path}.spec", owner="ReplicaSet")


def _strategy(strategy: DeploymentStrategy, path: str) -> list[FieldError]:
    rolling = strategy.rolling_update
    if strategy.type not in _STRATEGIES:
        shown = {"Type": strategy.type, "RollingUpdate": _shown(rolling)}
        return [unsupported(path, shown, _STRATEGIES)]
    path = f"{path}.rollingUpdate"
    if strategy.type == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(path, text)]
    if rolling is None:
        return [required(path, "this should be defaulted and never be nil")]
    return _rolling(rolling, path)


def _shown(rolling: RollingUpdateDeployment | None) -> dict[str, int | str] | None:
    if rolling is None:
        return None
    return {"MaxUnavailable": rolling.max_unavailable or 0, "MaxSurge": rolling.max_surge or 0}


def _rolling(rolling: RollingUpdateDeployment, path: str) -> list[FieldError]:
    unavailable, surge = rolling.max_unavailable, rolling.max_surge
    errors = int_or_percent(unavailable, f"{path}.maxUnavailable") + int_or_percent(surge, f"{path}.maxSurge")
    if number_of(unavailable) == 0 and number_of(surge) == 0:
        errors.append(invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_all(unavailable, f"{path}.maxUnavailable")


def _deadline(spec: DeploymentSpec) -> list[FieldError]:
    path, deadline = "spec.progressDeadlineSeconds", spec.progress_deadline_seconds
    if deadline is None:
        return []
    errors = nonnegative(deadline, path)
    if deadline <= spec.min_ready_seconds:
        errors.append(invalid(path, deadline, "must be greater than minReadySeconds"))
    return errors


def validate_deployment_update(new: Deployment, old: Deployment) -> list[FieldError]:
    return validate_deployment(new) + immutable(new.spec.selector, old.spec.selector, "spec.selector")


def validate_deployment_status(new: Deployment, old: Deployment) -> list[FieldError]:
    status = new.status
    errors = counts(
        status,
        "observed_generation",
        "replicas",
        "updated_replicas",
        "ready_replicas",
        "available_replicas",
        "unavailable_replicas",
        "terminating_replicas",
        "collision_count",
    )
    errors += at_most_replicas(status, "updated_replicas", "ready_replicas", "available_replicas")
    if status.available_replicas > status.ready_replicas:
        errors.append(invalid("status.availableReplicas", status.available_replicas, _MORE_AVAILABLE))
    return errors + collisions(status.collision_count, old.status.collision_count)


def validate_replica_set(replicas: ReplicaSet) -> list[FieldError]:
    spec: ReplicaSetSpec = replicas.spec
    errors = nonnegative(spec.replicas, "spec.replicas")
    errors += nonnegative(spec.min_ready_seconds, "spec.minReadySeconds")
    return errors + _pods(spec.selector, spec.template)


def validate_replica_set_update(new: ReplicaSet, old: ReplicaSet) -> list[FieldError]:
    return validate_replica_set(new) + immutable(new.spec.selector, old.spec.selector, "spec.selector")


def validate_replica_set_status(new: ReplicaSet, _old: ReplicaSet) -> list[FieldError]:
    status = new.status
    errors = counts(
        status,
        "replicas",
        "fully_labeled_replicas",
        "ready_replicas",
        "available_replicas",
        "observed_generation",
        "terminating_replicas",
    )
    errors += at_most_replicas(status, "fully_labeled_replicas", "ready_replicas", "available_replicas")
    if status.available_replicas > status.ready_replicas:
        errors.append(invalid("status.availableReplicas", status.available_replicas, _MORE_AVAILABLE))
    return errors


RULES: dict[type[Object], Rules] = {
    Deployment: Rules(create=validate_deployment, update=validate_deployment_update, status=validate_deployment_status),
    ReplicaSet: Rules(
        create=validate_replica_set, update=validate_replica_set_update, status=validate_replica_set_status
    ),
}
