"""Horizontal pod autoscalers. Version 1 is judged by what it stands for in version 2."""

from podfit.api.autoscaling.conversion import to_v2
from podfit.api.autoscaling.v1 import types as v1
from podfit.api.autoscaling.v2 import types as v2
from podfit.api.autoscaling.v2.metric_validation import (
    group_version_problem,
    object_version_problems,
    validate_metrics,
    validate_reference,
)
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import nonnegative
from podfit.api.meta.validation.rules import Rules
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, invalid, required, unsupported

_SELECT = ("Disabled", "Max", "Min")
_SORTS = ("Percent", "Pods")
_LONGEST_WINDOW, _LONGEST_PERIOD = 3600, 1800
_BELOW = "must be greater than or equal to `minReplicas`"


def validate_autoscaler(
    autoscaler: v2.HorizontalPodAutoscaler, gates: FeatureGates, old: v2.HorizontalPodAutoscaler | None = None
) -> list[FieldError]:
    """What was wrong in the `old` one already is let through, as far as versions are concerned."""
    to_zero = gates["HPAScaleToZero"] or (old is not None and old.spec.min_replicas == 0)
    least = 0 if to_zero else 1
    spec = autoscaler.spec
    errors = []
    if spec.min_replicas is not None and spec.min_replicas < least:
        text = f"must be greater than or equal to {least}"
        errors.append(invalid("spec.minReplicas", spec.min_replicas, text))
    if spec.max_replicas == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif spec.max_replicas < 0:
        errors.append(invalid("spec.maxReplicas", spec.max_replicas, "must be greater than or equal to 1"))
    if spec.min_replicas is not None and spec.max_replicas < spec.min_replicas:
        errors.append(invalid("spec.maxReplicas", spec.max_replicas, _BELOW))
    errors += validate_reference(spec.scale_target_ref, "spec.scaleTargetRef")
    if old is None or _target(old) != _target(autoscaler):
        errors += _version(spec.scale_target_ref, "spec.scaleTargetRef.apiVersion")
    versions = old is None or not any(map(object_version_problems, old.spec.metrics))
    errors += validate_metrics(spec.metrics, spec.min_replicas, "spec.metrics", versions=versions)
    for rules, name in _rules(spec.behavior):
        errors += _scaling(rules, f"spec.behavior.{name}")
    return errors


def _target(autoscaler: v2.HorizontalPodAutoscaler) -> tuple[str, str]:
    ref = autoscaler.spec.scale_target_ref
    return ref.api_version, ref.kind


def _version(ref: v2.CrossVersionObjectReference, path: str) -> list[FieldError]:
    if problem := group_version_problem(ref.api_version):
        return [invalid(path, ref.api_version, problem)]
    if "/" not in ref.api_version and ref.kind != "ReplicationController":
        return [invalid(path, ref.api_version, "apiVersion must specify API group")]
    return []


def _rules(behavior: v2.HorizontalPodAutoscalerBehavior | None) -> list[tuple[v2.HPAScalingRules, str]]:
    if behavior is None:
        return []
    given = ((behavior.scale_up, "scaleUp"), (behavior.scale_down, "scaleDown"))
    return [(rules, name) for rules, name in given if rules is not None]


def _scaling(rules: v2.HPAScalingRules, path: str) -> list[FieldError]:
    window, where = rules.stabilization_window_seconds, f"{path}.stabilizationWindowSeconds"
    errors = []
    if window is not None and window < 0:
        errors.append(invalid(where, window, "must be greater than or equal to zero"))
    if window is not None and window > _LONGEST_WINDOW:
        errors.append(invalid(where, window, f"must be less than or equal to {_LONGEST_WINDOW}"))
    if rules.select_policy is not None and rules.select_policy not in _SELECT:
        errors.append(unsupported(f"{path}.selectPolicy", rules.select_policy, _SELECT))
    if not rules.policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(rules.policies or ()):
        errors += _policy(policy, f"{path}.policies[{index}]")
    if rules.tolerance is not None and rules.tolerance.nano < 0:
        errors.append(invalid(f"{path}.tolerance", rules.tolerance, "must be greater than or equal to 0"))
    return errors


def _policy(policy: v2.HPAScalingPolicy, path: str) -> list[FieldError]:
    period = policy.period_seconds
    errors = []
    if policy.type not in _SORTS:
        errors.append(unsupported(f"{path}.type", policy.type, _SORTS))
    if policy.value <= 0:
        errors.append(invalid(f"{path}.value", policy.value, "must be greater than zero"))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    if period > _LONGEST_PERIOD:
        errors.append(invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {_LONGEST_PERIOD}"))
    return errors


def validate_update(
    new: v2.HorizontalPodAutoscaler, old: v2.HorizontalPodAutoscaler, gates: FeatureGates
) -> list[FieldError]:
    return validate_autoscaler(new, gates, old)


def validate_status(new: v2.HorizontalPodAutoscaler, _old: v2.HorizontalPodAutoscaler) -> list[FieldError]:
    status = new.status
    errors = nonnegative(status.current_replicas, "status.currentReplicas")
    return errors + nonnegative(status.desired_replicas, "status.desiredReplicas")


RULES: dict[type[Object], Rules] = {
    v2.HorizontalPodAutoscaler: Rules(
        names.dns_subdomain, validate_autoscaler, validate_update, validate_status, gated=True
    ),
    v1.HorizontalPodAutoscaler: Rules(
        names.dns_subdomain,
        lambda obj, gates: validate_autoscaler(to_v2(obj), gates),
        lambda new, old, gates: validate_update(to_v2(new), to_v2(old), gates),
        lambda new, old: validate_status(to_v2(new), to_v2(old)),
        gated=True,
    ),
}
