"""Horizontal pod autoscalers in the form in which they are stored: any metrics, and how fast to follow them."""

from typing import Annotated

from podfit.api.meta.base import Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta
from podfit.core.quantity import Quantity


class MetricTarget(Struct):
    average_utilization: int | None = None
    average_value: Quantity | None = None
    type: str = always(default="")
    value: Quantity | None = None


class ContainerResourceMetricSource(Struct):
    container: str = always(default="")
    name: str = always(default="")
    target: MetricTarget = always(default=MetricTarget())


class MetricValueStatus(Struct):
    average_utilization: int | None = None
    average_value: Quantity | None = None
    value: Quantity | None = None


class ContainerResourceMetricStatus(Struct):
    container: str = always(default="")
    current: MetricValueStatus = always(default=MetricValueStatus())
    name: str = always(default="")


class CrossVersionObjectReference(Struct):
    api_version: str = ""
    kind: str = always(default="")
    name: str = always(default="")


class MetricIdentifier(Struct):
    name: str = always(default="")
    selector: LabelSelector | None = None


class ExternalMetricSource(Struct):
    metric: MetricIdentifier = always(default=MetricIdentifier())
    target: MetricTarget = always(default=MetricTarget())


class ExternalMetricStatus(Struct):
    current: MetricValueStatus = always(default=MetricValueStatus())
    metric: MetricIdentifier = always(default=MetricIdentifier())


class HPAScalingPolicy(Struct):
    period_seconds: int = always(default=0)
    type: str = always(default="")
    value: int = always(default=0)


class HPAScalingRules(Struct):
    policies: tuple[HPAScalingPolicy, ...] | None = None
    select_policy: str | None = None
    stabilization_window_seconds: int | None = None
    tolerance: Quantity | None = None


class HorizontalPodAutoscalerBehavior(Struct):
    scale_down: HPAScalingRules | None = None
    scale_up: HPAScalingRules | None = None


class ObjectMetricSource(Struct):
    described_object: CrossVersionObjectReference = always(default=CrossVersionObjectReference())
    metric: MetricIdentifier = always(default=MetricIdentifier())
    target: MetricTarget = always(default=MetricTarget())


class PodsMetricSource(Struct):
    metric: MetricIdentifier = always(default=MetricIdentifier())
    target: MetricTarget = always(default=MetricTarget())


class ResourceMetricSource(Struct):
    name: str = always(default="")
    target: MetricTarget = always(default=MetricTarget())


class MetricSpec(Struct):
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    type: str = always(default="")


class HorizontalPodAutoscalerSpec(Struct):
    behavior: HorizontalPodAutoscalerBehavior | None = None
    max_replicas: int = always(default=0)
    metrics: tuple[MetricSpec, ...] = ()
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference = always(default=CrossVersionObjectReference())


class HorizontalPodAutoscalerCondition(Struct):
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")
    type: str = always(default="")


class ObjectMetricStatus(Struct):
    current: MetricValueStatus = always(default=MetricValueStatus())
    described_object: CrossVersionObjectReference = always(default=CrossVersionObjectReference())
    metric: MetricIdentifier = always(default=MetricIdentifier())


class PodsMetricStatus(Struct):
    current: MetricValueStatus = always(default=MetricValueStatus())
    metric: MetricIdentifier = always(default=MetricIdentifier())


class ResourceMetricStatus(Struct):
    current: MetricValueStatus = always(default=MetricValueStatus())
    name: str = always(default="")


class MetricStatus(Struct):
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    type: str = always(default="")


class HorizontalPodAutoscalerStatus(Struct):
    conditions: Annotated[tuple[HorizontalPodAutoscalerCondition, ...], keyed("type")] = ()
    current_metrics: tuple[MetricStatus, ...] | None = always(default=None)
    current_replicas: int = 0
    desired_replicas: int = always(default=0)
    last_scale_time: Time | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(Object):
    kind: str = always(default="HorizontalPodAutoscaler")
    api_version: str = always(default="autoscaling/v2")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: HorizontalPodAutoscalerSpec = always(default=HorizontalPodAutoscalerSpec())
    status: HorizontalPodAutoscalerStatus = always(default=HorizontalPodAutoscalerStatus())
