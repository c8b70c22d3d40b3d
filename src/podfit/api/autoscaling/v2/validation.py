"""Horizontal pod autoscalers. Version 1 is judged by what it stands for in version 2."""

from podfit.api.autoscaling.conversion import to_v2
from podfit.api.autoscaling.v1 import types as v1
from podfit.api.autoscaling.v2 import types as v2
from podfit.api.autoscaling.v2.types import (
    ContainerResourceMetricSource,
    CrossVersionObjectReference,
    ExternalMetricSource,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
    ObjectMetricSource,
    PodsMetricSource,
    ResourceMetricSource,
)
from podfit.api.core.v1.pods.validation.resources import container_resource_name
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import nonnegative
from podfit.api.meta.validation.rules import Rules
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported

_FIELDS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""The field of each sort of metric, in the order in which they are looked at."""
_TARGETS = ("Utilization", "Value", "AverageValue")
_NEITHER = "must set either a target raw value or a target utilization"
_BOTH = "may not set both a target raw value and a target utilization"


def validate_reference(ref: CrossVersionObjectReference, path: str) -> list[FieldError]:
    return _segment(ref.kind, f"{path}.kind") + _segment(ref.name, f"{path}.name")


def _segment(value: str, path: str, missing: str = "") -> list[FieldError]:
    if not value:
        return [required(path, missing)]
    return [invalid(path, value, text) for text in names.path_segment(value)]


def group_version_problem(api_version: str) -> str:
    """Empty when there is none."""
    group, slash, version = api_version.rpartition("/")
    wrong = api_version.count("/") > 1 or (slash and not (group and version))
    return f"unexpected GroupVersion string: {api_version}" if wrong else ""


def object_version_problems(metric: MetricSpec) -> bool:
    """Whether the object that describes a metric has a version that cannot be read."""
    return metric.object is not None and bool(group_version_problem(metric.object.described_object.api_version))


def validate_metrics(
    metrics: tuple[MetricSpec, ...], least: int | None, path: str, *, versions: bool = True
) -> list[FieldError]:
    """`versions`: whether those of described objects are looked at."""
    errors = [
        error
        for index, metric in enumerate(metrics)
        for error in _metric(metric, f"{path}[{index}]", versions=versions)
    ]
    if least == 0 and not any(metric.type in ("Object", "External") for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden(path, text))
    return errors


def _metric(metric: MetricSpec, path: str, *, versions: bool) -> list[FieldError]:
    sources = {
        "object": metric.object,
        "external": metric.external,
        "pods": metric.pods,
        "resource": metric.resource,
        "containerResource": metric.container_resource,
    }
    given = {name: source for name, source in sources.items() if source is not None}
    errors = []
    if not metric.type:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if metric.type not in _FIELDS:
        errors += [unsupported(f"{path}.type", metric.type, sorted(_FIELDS))] * 2  # upstream looks twice
    for name, source in list(given.items())[:1]:
        errors += _source(source, f"{path}.{name}")
        if name == "object" and versions and metric.object is not None:
            described = metric.object.described_object
            if problem := group_version_problem(described.api_version):
                errors.append(invalid(f"{path}.object.describedObject.apiVersion", described.api_version, problem))
    wanted = _FIELDS.get(metric.type, "")
    if wanted and wanted not in given:
        errors.append(required(f"{path}.{wanted}", "must populate information for the given metric source"))
    if len(given) != 1:
        text = "must populate the given metric source only"
        errors += [forbidden(f"{path}.{name}", text) for name in given if name != wanted]
    return errors


def _source(source: object, path: str) -> list[FieldError]:
    match source:
        case ObjectMetricSource():
            return _object(source, path)
        case ExternalMetricSource():
            return _external(source, path)
        case PodsMetricSource(target=target):
            errors = _identifier(source.metric, f"{path}.metric") + _target_errors(target, f"{path}.target")
            if target.average_value is None:
                text = "must specify a positive target averageValue"
                errors.append(required(f"{path}.target.averageValue", text))
            return errors
        case ResourceMetricSource(target=target):
            errors = [] if source.name else [required(f"{path}.name", "must specify a resource name")]
            return errors + _usage(target, f"{path}.target")
        case ContainerResourceMetricSource(target=target):
            return _container(source, path) + _usage(target, f"{path}.target")
    return []


def _object(source: ObjectMetricSource, path: str) -> list[FieldError]:
    target = source.target
    errors = validate_reference(source.described_object, f"{path}.describedObject")
    errors += _identifier(source.metric, f"{path}.metric") + _target_errors(target, f"{path}.target")
    if target.value is None and target.average_value is None:
        text = "must set either a target value or averageValue"
        errors.append(required(f"{path}.target.averageValue", text))
    return errors


def _external(source: ExternalMetricSource, path: str) -> list[FieldError]:
    target = source.target
    errors = _identifier(source.metric, f"{path}.metric") + _target_errors(target, f"{path}.target")
    if target.value is None and target.average_value is None:
        text = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{path}.target.averageValue", text))
    if target.value is not None and target.average_value is not None:
        text = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{path}.target.value", text))
    return errors


def _container(source: ContainerResourceMetricSource, path: str) -> list[FieldError]:
    if source.name:
        errors = container_resource_name(source.name, f"{path}.name")
    else:
        errors = [required(f"{path}.name", "must specify a resource name")]
    if not source.container:
        return [*errors, required(f"{path}.container", "must specify a container")]
    return errors + [invalid(f"{path}.container", source.container, text) for text in names.dns_label(source.container)]


def _usage(target: MetricTarget, path: str) -> list[FieldError]:
    errors = _target_errors(target, path)
    if target.average_utilization is None and target.average_value is None:
        errors.append(required(f"{path}.averageUtilization", _NEITHER))
    if target.average_utilization is not None and target.average_value is not None:
        errors.append(forbidden(f"{path}.averageValue", _BOTH))
    return errors


def _identifier(metric: MetricIdentifier, path: str) -> list[FieldError]:
    return _segment(metric.name, f"{path}.name", "must specify a metric name")


def _target_errors(target: MetricTarget, path: str) -> list[FieldError]:
    errors = [] if target.type else [required(f"{path}.type", "must specify a metric target type")]
    if target.type not in _TARGETS:
        errors.append(invalid(f"{path}.type", target.type, "must be either Utilization, Value, or AverageValue"))
    for amount, name in ((target.value, "value"), (target.average_value, "averageValue")):
        if amount is not None and amount.nano <= 0:
            errors.append(invalid(f"{path}.{name}", amount, "must be positive"))
    utilization = target.average_utilization
    if utilization is not None and utilization < 1:
        errors.append(invalid(f"{path}.averageUtilization", utilization, "must be greater than 0"))
    return errors


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
