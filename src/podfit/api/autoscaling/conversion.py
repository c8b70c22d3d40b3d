"""Horizontal pod autoscalers between their two versions.

Version 1 has a field for the use of the CPU and none for other metrics, for behaviour and conditions: those travel in
annotations, in forms that are older than version 2, so that nothing is lost on the way there and back.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling.defaults import BEHAVIOR, CONDITIONS, CURRENT, METRICS, with_defaults, without_carriers
from podfit.api.autoscaling.v1 import types as v1
from podfit.api.autoscaling.v2 import types as v2
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta

_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")
_SOURCES = ("object", "pods", "resource", "containerResource", "external")


def to_v1(autoscaler: v2.HorizontalPodAutoscaler) -> v1.HorizontalPodAutoscaler:
    spec, status, ref = autoscaler.spec, autoscaler.status, autoscaler.spec.scale_target_ref
    percent, others = _split(spec.metrics, "target")
    current, also = _split(status.current_metrics or (), "current")
    carried = {
        METRICS: [_old_form(other, "target", "target") for other in others],
        CURRENT: [_old_form(metric, "current", "current") for metric in also],
        CONDITIONS: [_ordered(condition, _CONDITION) for condition in codec.to_dict(status.conditions)],
        BEHAVIOR: _go_behavior(spec.behavior),
    }
    texts = {name: msgspec.json.encode(value).decode() for name, value in carried.items() if value}
    return v1.HorizontalPodAutoscaler(
        metadata=_annotated(autoscaler.metadata, texts),
        spec=v1.HorizontalPodAutoscalerSpec(
            max_replicas=spec.max_replicas,
            min_replicas=spec.min_replicas,
            target_cpu_utilization_percentage=percent,
            scale_target_ref=v1.CrossVersionObjectReference(api_version=ref.api_version, kind=ref.kind, name=ref.name),
        ),
        status=v1.HorizontalPodAutoscalerStatus(
            current_cpu_utilization_percentage=current,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            last_scale_time=status.last_scale_time,
            observed_generation=status.observed_generation,
        ),
    )


def to_v2(autoscaler: v1.HorizontalPodAutoscaler) -> v2.HorizontalPodAutoscaler:
    """An annotation that cannot be read carries nothing."""
    spec, status, ref = autoscaler.spec, autoscaler.status, autoscaler.spec.scale_target_ref
    texts = autoscaler.metadata.annotations
    others = _read(texts.get(METRICS), tuple[v2.MetricSpec, ...], lambda metrics: _new_forms(metrics, "target"))
    also = _read(texts.get(CURRENT), tuple[v2.MetricStatus, ...], lambda metrics: _new_forms(metrics, "current"))
    metrics = (*(others or ()), *_cpu_target(spec.target_cpu_utilization_percentage))
    current = (*(also or ()), *_cpu_current(status.current_cpu_utilization_percentage))
    conditions = _read(texts.get(CONDITIONS), tuple[v2.HorizontalPodAutoscalerCondition, ...])
    second = v2.HorizontalPodAutoscaler(
        metadata=_annotated(autoscaler.metadata, {}),
        spec=v2.HorizontalPodAutoscalerSpec(
            max_replicas=spec.max_replicas,
            min_replicas=spec.min_replicas,
            metrics=metrics,
            behavior=_read(texts.get(BEHAVIOR), v2.HorizontalPodAutoscalerBehavior, _from_go),
            scale_target_ref=v2.CrossVersionObjectReference(api_version=ref.api_version, kind=ref.kind, name=ref.name),
        ),
        status=v2.HorizontalPodAutoscalerStatus(
            conditions=conditions or (),
            current_metrics=current or None,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            last_scale_time=status.last_scale_time,
            observed_generation=status.observed_generation,
        ),
    )
    return with_defaults(second)


def _annotated(meta: ObjectMeta, texts: dict[str, str]) -> ObjectMeta:
    return replace(meta, annotations=without_carriers(meta).annotations | texts)


def _ordered(document: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """In Go's order of the fields, since the text is compared."""
    return {name: document[name] for name in names if name in document}


def _split(metrics: Iterable[Any], part: str) -> tuple[int | None, list[Any]]:
    """The use of the CPU in percent, which version 1 has a field for, and the other metrics."""
    percent, others = None, []
    for metric in metrics:
        source = metric.resource if metric.type == "Resource" else None
        use = getattr(source, part).average_utilization if source is not None and source.name == "cpu" else None
        if use is None:
            others.append(metric)
        elif percent is None:
            percent = use
    return percent, others


def _cpu_target(percent: int | None) -> tuple[v2.MetricSpec, ...]:
    if percent is None:
        return ()
    target = v2.MetricTarget(type="Utilization", average_utilization=percent)
    return (v2.MetricSpec(type="Resource", resource=v2.ResourceMetricSource(name="cpu", target=target)),)


def _cpu_current(percent: int | None) -> tuple[v2.MetricStatus, ...]:
    if percent is None:
        return ()
    current = v2.MetricValueStatus(average_utilization=percent)
    return (v2.MetricStatus(type="Resource", resource=v2.ResourceMetricStatus(name="cpu", current=current)),)


def _old_form(metric: Any, part: str, prefix: str) -> dict[str, Any]:
    """A metric as version 1 writes it: flat, `metricName` for `metric.name`, `targetAverageValue` for the target's."""
    document: dict[str, Any] = codec.to_dict(metric)
    found: dict[str, Any] = {"type": document["type"]}
    for name in _SOURCES:
        if (source := document.get(name)) is not None:
            found[name] = _flat(name, source, part, prefix)
    return found


def _flat(name: str, source: dict[str, Any], part: str, prefix: str) -> dict[str, Any]:
    amounts, metric = source[part], source.get("metric", {})
    flat: dict[str, Any] = {key: source[key] for key in ("name", "container") if key in source}
    if "describedObject" in source:
        flat["target"] = _ordered(source["describedObject"], ("kind", "name", "apiVersion"))
    if metric:
        flat["metricName"] = metric["name"]
        if "selector" in metric:
            flat["metricSelector" if name == "external" else "selector"] = metric["selector"]
    average = "averageValue" if name == "object" else f"{prefix}AverageValue"
    keys = {"value": f"{prefix}Value", "averageValue": average, "averageUtilization": f"{prefix}AverageUtilization"}
    flat |= {keys[key]: amounts[key] for key in keys if key in amounts}
    if name == "object":  # it has no other way to say that there is none
        flat.setdefault(f"{prefix}Value", "0")
    amounts_first = (f"{prefix}Value", f"{prefix}AverageUtilization", f"{prefix}AverageValue")
    return _ordered(
        flat,
        ("name", "target", "metricName", "metricSelector", *amounts_first, "selector", "averageValue", "container"),
    )


def _new_forms(documents: Any, part: str) -> Any:
    return [
        {"type": document["type"]}
        | {name: _nested(name, document[name], part) for name in _SOURCES if document.get(name)}
        for document in documents
    ]


def _nested(name: str, flat: dict[str, Any], part: str) -> dict[str, Any]:
    average = flat.get("averageValue" if name == "object" else f"{part}AverageValue")
    value, use = flat.get(f"{part}Value"), flat.get(f"{part}AverageUtilization")
    if name == "object" and average is not None and part == "target":
        value = None
    amounts = {"value": value, "averageValue": average, "averageUtilization": use}
    if part == "target":
        amounts["type"] = "Utilization" if use is not None else "Value" if value is not None else "AverageValue"
    source: dict[str, Any] = {part: {key: amount for key, amount in amounts.items() if amount is not None}}
    source |= {key: flat[key] for key in ("name", "container") if key in flat}
    if name == "object":
        source["describedObject"] = flat["target"]
    if "metricName" in flat:
        selector = flat.get("metricSelector" if name == "external" else "selector")
        source["metric"] = {"name": flat["metricName"]} | ({"selector": selector} if selector else {})
    return source


def _go_behavior(behavior: v2.HorizontalPodAutoscalerBehavior | None) -> dict[str, Any] | None:
    """By the inner names of upstream, which the annotation was given by accident and kept."""
    if behavior is None:
        return None
    return {"ScaleUp": _go_rules(behavior.scale_up), "ScaleDown": _go_rules(behavior.scale_down)}


def _go_rules(rules: v2.HPAScalingRules | None) -> dict[str, Any] | None:
    if rules is None:
        return None
    policies = [
        {"Type": policy.type, "Value": policy.value, "PeriodSeconds": policy.period_seconds}
        for policy in rules.policies or ()
    ]
    return {
        "StabilizationWindowSeconds": rules.stabilization_window_seconds,
        "SelectPolicy": rules.select_policy,
        "Policies": policies or None,
        "Tolerance": str(rules.tolerance) if rules.tolerance is not None else None,
    }


def _from_go(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[:1].lower() + name[1:]: _from_go(member) for name, member in value.items()}
    return [_from_go(item) for item in value] if isinstance(value, list) else value


def _read(text: str | None, kind: Any, prepare: Any = lambda decoded: decoded) -> Any:
    if text is None:
        return None
    try:
        return codec.convert(prepare(msgspec.json.decode(text)), kind)
    except (ValueError, KeyError, TypeError, AttributeError):  # msgspec's own refusals are ValueErrors
        return None
