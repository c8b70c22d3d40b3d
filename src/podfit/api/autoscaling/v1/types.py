"""The scale of whatever has replicas, and the first form of horizontal pod autoscalers, which knew the CPU only."""

from typing import ClassVar

from msgspec import field

from podfit.api.meta.base import Object, Struct, Time, always
from podfit.api.meta.v1.types import ObjectMeta


class CrossVersionObjectReference(Struct):
    whole: ClassVar[bool] = True
    api_version: str = ""
    kind: str = always(default="")
    name: str = always(default="")


class HorizontalPodAutoscalerSpec(Struct):
    max_replicas: int = always(default=0)
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference = always(default=CrossVersionObjectReference())
    target_cpu_utilization_percentage: int | None = field(default=None, name="targetCPUUtilizationPercentage")


class HorizontalPodAutoscalerStatus(Struct):
    current_cpu_utilization_percentage: int | None = field(default=None, name="currentCPUUtilizationPercentage")
    current_replicas: int = always(default=0)
    desired_replicas: int = always(default=0)
    last_scale_time: Time | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(Object):
    kind: str = always(default="HorizontalPodAutoscaler")
    api_version: str = always(default="autoscaling/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: HorizontalPodAutoscalerSpec = always(default=HorizontalPodAutoscalerSpec())
    status: HorizontalPodAutoscalerStatus = always(default=HorizontalPodAutoscalerStatus())


class ScaleSpec(Struct):
    replicas: int = 0


class ScaleStatus(Struct):
    replicas: int = always(default=0)
    selector: str = ""


class Scale(Object):
    kind: str = always(default="Scale")
    api_version: str = always(default="autoscaling/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: ScaleSpec = always(default=ScaleSpec())
    status: ScaleStatus = always(default=ScaleStatus())
