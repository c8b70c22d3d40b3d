"""Daemon sets, a pod on every node, and the revisions by which they and stateful sets are rolled back."""

from typing import Annotated, Any

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.meta.base import IntOrString, Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta


class ControllerRevision(Object):
    kind: str = always(default="ControllerRevision")
    api_version: str = always(default="apps/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    data: Any = always(default=None)
    revision: int = always(default=0)


class RollingUpdateDaemonSet(Struct):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class DaemonSetUpdateStrategy(Struct):
    rolling_update: RollingUpdateDaemonSet | None = None
    type: str = ""


class DaemonSetSpec(Struct):
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    selector: LabelSelector | None = always(default=None)
    template: PodTemplateSpec = always(default=PodTemplateSpec())
    update_strategy: DaemonSetUpdateStrategy = always(default=DaemonSetUpdateStrategy())


class DaemonSetCondition(Struct):
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")
    type: str = always(default="")


class DaemonSetStatus(Struct):
    collision_count: int | None = None
    conditions: Annotated[tuple[DaemonSetCondition, ...], keyed("type")] = ()
    current_number_scheduled: int = always(default=0)
    desired_number_scheduled: int = always(default=0)
    number_available: int = 0
    number_misscheduled: int = always(default=0)
    number_ready: int = always(default=0)
    number_unavailable: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(Object):
    kind: str = always(default="DaemonSet")
    api_version: str = always(default="apps/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: DaemonSetSpec = always(default=DaemonSetSpec())
    status: DaemonSetStatus = always(default=DaemonSetStatus())
