"""policy/v1: PodDisruptionBudget and Eviction."""

from typing import Annotated

from msgspec import field

from podfit.api.meta.base import REPLACED, IntOrString, Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import Condition, DeleteOptions, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(Struct):
    max_unavailable: IntOrString | None = None
    min_available: IntOrString | None = None
    selector: Annotated[LabelSelector | None, REPLACED] = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct):
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    current_healthy: int = always(default=0)
    desired_healthy: int = always(default=0)
    disrupted_pods: dict[str, Time] = field(default_factory=dict)
    disruptions_allowed: int = always(default=0)
    expected_pods: int = always(default=0)
    observed_generation: int = 0


class PodDisruptionBudget(Object):
    kind: str = always(default="PodDisruptionBudget")
    api_version: str = always(default="policy/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: PodDisruptionBudgetSpec = always(default=PodDisruptionBudgetSpec())
    status: PodDisruptionBudgetStatus = always(default=PodDisruptionBudgetStatus())


class Eviction(Object):
    kind: str = always(default="Eviction")
    api_version: str = always(default="policy/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    delete_options: DeleteOptions | None = None
