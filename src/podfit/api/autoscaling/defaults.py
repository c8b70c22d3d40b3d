"""Defaults of horizontal pod autoscalers, in either version."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from podfit.api.autoscaling.v1 import types as v1
from podfit.api.autoscaling.v2 import types as v2
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, fill, inside
from podfit.api.meta.v1.types import ObjectMeta

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
"""The annotation that holds, in version 1, the metrics that it has no fields for."""
CURRENT, CONDITIONS, BEHAVIOR = f"{_PREFIX}current-metrics", f"{_PREFIX}conditions", f"{_PREFIX}behavior"
CARRIERS = frozenset(
    {METRICS, CURRENT, CONDITIONS, BEHAVIOR, f"{_PREFIX}scale-up-tolerance", f"{_PREFIX}scale-down-tolerance"}
)
PERCENT = 80
_CPU = v2.MetricTarget(type="Utilization", average_utilization=PERCENT)
_USUAL = (v2.MetricSpec(type="Resource", resource=v2.ResourceMetricSource(name="cpu", target=_CPU)),)
_ALL_OF_THEM = v2.HPAScalingPolicy(type="Percent", value=100, period_seconds=15)
_FOUR = v2.HPAScalingPolicy(type="Pods", value=4, period_seconds=15)


def with_defaults(autoscaler: v2.HorizontalPodAutoscaler) -> v2.HorizontalPodAutoscaler:
    """Annotations that carry fields of version 1 mean nothing in version 2."""
    return inside(autoscaler, spec=_spec, metadata=without_carriers)


def without_carriers(meta: ObjectMeta) -> ObjectMeta:
    if not any(name in CARRIERS for name in meta.annotations):
        return meta
    return replace(meta, annotations={name: text for name, text in meta.annotations.items() if name not in CARRIERS})


def _spec(spec: v2.HorizontalPodAutoscalerSpec) -> v2.HorizontalPodAutoscalerSpec:
    return inside(fill(spec, min_replicas=1, metrics=_USUAL), behavior=_behavior)


def _behavior(behavior: v2.HorizontalPodAutoscalerBehavior) -> v2.HorizontalPodAutoscalerBehavior:
    behavior = fill(behavior, scale_up=v2.HPAScalingRules(), scale_down=v2.HPAScalingRules())
    return inside(
        behavior,
        scale_up=lambda rules: fill(
            rules, stabilization_window_seconds=0, select_policy="Max", policies=(_FOUR, _ALL_OF_THEM)
        ),
        scale_down=lambda rules: fill(rules, select_policy="Max", policies=(_ALL_OF_THEM,)),
    )


def _first(autoscaler: v1.HorizontalPodAutoscaler) -> v1.HorizontalPodAutoscaler:
    """The CPU is the default metric unless an annotation names others."""
    spec = fill(autoscaler.spec, min_replicas=1)
    if METRICS not in autoscaler.metadata.annotations:
        spec = fill(spec, target_cpu_utilization_percentage=PERCENT)
    return change(autoscaler, spec=spec)


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {
    v2.HorizontalPodAutoscaler: with_defaults,
    v1.HorizontalPodAutoscaler: _first,
}
