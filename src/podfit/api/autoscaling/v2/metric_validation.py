"""The metrics that a horizontal pod autoscaler follows."""

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
from podfit.api.meta.validation import names
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
            errors = _identifier(source.metric, f"{path}.metric") + _target(target, f"{path}.target")
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
    errors += _identifier(source.metric, f"{path}.metric") + _target(target, f"{path}.target")
    if target.value is None and target.average_value is None:
        text = "must set either a target value or averageValue"
        errors.append(required(f"{path}.target.averageValue", text))
    return errors


def _external(source: ExternalMetricSource, path: str) -> list[FieldError]:
    target = source.target
    errors = _identifier(source.metric, f"{path}.metric") + _target(target, f"{path}.target")
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
    errors = _target(target, path)
    if target.average_utilization is None and target.average_value is None:
        errors.append(required(f"{path}.averageUtilization", _NEITHER))
    if target.average_utilization is not None and target.average_value is not None:
        errors.append(forbidden(f"{path}.averageValue", _BOTH))
    return errors


def _identifier(metric: MetricIdentifier, path: str) -> list[FieldError]:
    return _segment(metric.name, f"{path}.name", "must specify a metric name")


def _target(target: MetricTarget, path: str) -> list[FieldError]:
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
