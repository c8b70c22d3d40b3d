"""VerticalPodAutoscaler and its checkpoint.

The API declares no defaults: what is None here was not given, and whoever reads it applies the default that
`decide.autoscaling.policies` has. An explicit empty list of `controlled_resources` is not the same as none.
"""

from typing import Annotated, Any

from msgspec import field

from podfit.api.meta.base import Object, ResourceList, Struct, Time, always, keyed
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.quantity import Quantity


class CrossVersionObjectReference(Struct):
    kind: str = always(default="")
    name: str = always(default="")
    api_version: str = ""


class EvictionRequirement(Struct):
    resources: tuple[str, ...] = always(default=())
    change_requirement: str = always(default="")


class PodUpdatePolicy(Struct):
    update_mode: str | None = None
    min_replicas: int | None = None
    eviction_requirements: tuple[EvictionRequirement, ...] = ()
    evict_after_oom_seconds: int | None = field(default=None, name="evictAfterOOMSeconds")


class GenericStartupBoost(Struct):
    """`factor` multiplies the request, `quantity` is added to it; `duration_seconds` run from when the pod is ready."""

    type: str = always(default="")
    factor: int | None = None
    quantity: Quantity | None = None
    duration_seconds: int | None = None


class StartupBoost(Struct):
    cpu: GenericStartupBoost | None = None


class ContainerResourcePolicy(Struct):
    """The two percentiles, shares of 1, are proposed upstream (AEP-9970)."""

    container_name: str = ""
    mode: str | None = None
    min_allowed: ResourceList = field(default_factory=dict)
    max_allowed: ResourceList = field(default_factory=dict)
    controlled_resources: tuple[str, ...] | None = None
    controlled_values: str | None = None
    oom_bump_up_ratio: Quantity | None = None
    oom_min_bump_up: Quantity | None = None
    memory_aggregation_interval_seconds: int | None = None
    memory_aggregation_interval_count: int | None = None
    target_cpu_percentile: Quantity | None = field(default=None, name="targetCPUPercentile")
    target_memory_percentile: Quantity | None = None
    startup_boost: StartupBoost | None = None


class PodResourcePolicy(Struct):
    container_policies: Annotated[tuple[ContainerResourcePolicy, ...], keyed("containerName")] = ()


class RecommenderSelector(Struct):
    name: str = always(default="")


class VerticalPodAutoscalerSpec(Struct):
    target_ref: CrossVersionObjectReference | None = None
    update_policy: PodUpdatePolicy | None = None
    resource_policy: PodResourcePolicy | None = None
    recommenders: tuple[RecommenderSelector, ...] = ()
    startup_boost: StartupBoost | None = None


class RecommendedContainerResources(Struct):
    container_name: str = ""
    target: ResourceList = always(default={})
    lower_bound: ResourceList = field(default_factory=dict)
    upper_bound: ResourceList = field(default_factory=dict)
    uncapped_target: ResourceList = field(default_factory=dict)


class RecommendedPodResources(Struct):
    container_recommendations: tuple[RecommendedContainerResources, ...] = ()


class VerticalPodAutoscalerCondition(Struct):
    type: str = always(default="")
    status: str = always(default="")
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class VerticalPodAutoscalerStatus(Struct):
    recommendation: RecommendedPodResources | None = None
    conditions: Annotated[tuple[VerticalPodAutoscalerCondition, ...], keyed("type")] = ()
    observed_generation: int = 0


class VerticalPodAutoscaler(Object):
    kind: str = always(default="VerticalPodAutoscaler")
    api_version: str = always(default="autoscaling.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: VerticalPodAutoscalerSpec = always(default=VerticalPodAutoscalerSpec())
    status: VerticalPodAutoscalerStatus = always(default=VerticalPodAutoscalerStatus())


class HistogramCheckpoint(Struct):
    """`bucket_weights`: index of a bucket to its share, in 1/10000 of the heaviest bucket."""

    reference_timestamp: Time | None = always(default=None)
    bucket_weights: dict[str, Any] = field(default_factory=dict)
    total_weight: float = 0.0


class VerticalPodAutoscalerCheckpointSpec(Struct):
    vpa_object_name: str = field(default="", name="vpaObjectName")
    container_name: str = ""


class VerticalPodAutoscalerCheckpointStatus(Struct):
    last_update_time: Time | None = always(default=None)
    version: str = ""
    cpu_histogram: HistogramCheckpoint = always(default=HistogramCheckpoint())
    memory_histogram: HistogramCheckpoint = always(default=HistogramCheckpoint())
    first_sample_start: Time | None = always(default=None)
    last_sample_start: Time | None = always(default=None)
    total_samples_count: int = 0


class VerticalPodAutoscalerCheckpoint(Object):
    kind: str = always(default="VerticalPodAutoscalerCheckpoint")
    api_version: str = always(default="autoscaling.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: VerticalPodAutoscalerCheckpointSpec = always(default=VerticalPodAutoscalerCheckpointSpec())
    status: VerticalPodAutoscalerCheckpointStatus = always(default=VerticalPodAutoscalerCheckpointStatus())
