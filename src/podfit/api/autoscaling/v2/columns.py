"""Columns of `kubectl get` for horizontal pod autoscalers."""

from collections.abc import Sequence
from typing import Any

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, MetricSpec, MetricStatus
from podfit.api.meta.columns import AGE, NAME, NONE, UNKNOWN, age
from podfit.api.meta.resource_info import Column

AUTOSCALER = (
    NAME,
    Column("Reference", description="What is scaled."),
    Column("Targets", description="Each metric as it is and as it should be."),
    Column("MinPods", description="The least number of pods."),
    Column("MaxPods", description="The greatest number of pods."),
    Column("Replicas", description="Pods that there are."),
    AGE,
)
_SHOWN = 2  # metrics; of more the rest is counted
_SOURCES = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "container_resource",
    "External": "external",
}
_NAMED = ("Resource", "ContainerResource")
_EITHER = ("Object", "External")  # their target is a whole value or an average, so the latter is marked


def autoscaler_row(autoscaler: HorizontalPodAutoscaler, now: str) -> list[Any]:
    spec, status = autoscaler.spec, autoscaler.status
    ref = spec.scale_target_ref
    return [
        autoscaler.metadata.name,
        f"{ref.kind}/{ref.name}",
        _targets(spec.metrics, status.current_metrics or ()),
        "<unset>" if spec.min_replicas is None else str(spec.min_replicas),
        spec.max_replicas,
        status.current_replicas,
        age(autoscaler, now),
    ]


def _targets(metrics: Sequence[MetricSpec], current: Sequence[MetricStatus]) -> str:
    if not metrics:
        return NONE
    texts = [_target(metric, current[index] if index < len(current) else None) for index, metric in enumerate(metrics)]
    more = f" + {len(texts) - _SHOWN} more..." if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def _target(metric: MetricSpec, current: MetricStatus | None) -> str:
    """`cpu: 40%/80%`, `12/20 (avg)`."""
    field = _SOURCES.get(metric.type)
    source = getattr(metric, field) if field else None
    if source is None:
        return "<unknown type>"
    seen = getattr(current, field, None) if current is not None and field else None
    is_, wanted = getattr(seen, "current", None), source.target
    head = f"{source.name}: " if metric.type in _NAMED else ""
    if wanted.average_value is not None:
        mean = " (avg)" if metric.type in _EITHER else ""
        return f"{head}{_shown(is_ and is_.average_value)}/{wanted.average_value}{mean}"
    if wanted.average_utilization is not None:
        use = is_ and is_.average_utilization
        return f"{head}{UNKNOWN if use is None else f'{use}%'}/{wanted.average_utilization}%"
    return f"{head}{_shown(is_ and is_.value)}/{wanted.value if wanted.value is not None else '<auto>'}"


def _shown(amount: Any) -> str:
    return UNKNOWN if amount is None else str(amount)
