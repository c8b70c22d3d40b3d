"""Deployments and replica sets: any number of like pods, replaced in waves."""

from typing import Annotated

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.meta.base import RETAIN_KEYS, IntOrString, Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta


class RollingUpdateDeployment(Struct):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class DeploymentStrategy(Struct):
    rolling_update: RollingUpdateDeployment | None = None
    type: str = ""


class DeploymentSpec(Struct):
    min_ready_seconds: int = 0
    paused: bool = False
    progress_deadline_seconds: int | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector | None = always(default=None)
    strategy: Annotated[DeploymentStrategy, RETAIN_KEYS] = always(default=DeploymentStrategy())
    template: PodTemplateSpec = always(default=PodTemplateSpec())


class DeploymentCondition(Struct):
    last_transition_time: Time | None = always(default=None)
    last_update_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")
    type: str = always(default="")


class DeploymentStatus(Struct):
    available_replicas: int = 0
    collision_count: int | None = None
    conditions: Annotated[tuple[DeploymentCondition, ...], keyed("type")] = ()
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0
    terminating_replicas: int | None = None
    unavailable_replicas: int = 0
    updated_replicas: int = 0


class Deployment(Object):
    kind: str = always(default="Deployment")
    api_version: str = always(default="apps/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: DeploymentSpec = always(default=DeploymentSpec())
    status: DeploymentStatus = always(default=DeploymentStatus())


class ReplicaSetSpec(Struct):
    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: LabelSelector | None = always(default=None)
    template: PodTemplateSpec = always(default=PodTemplateSpec())


class ReplicaSetCondition(Struct):
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")
    type: str = always(default="")


class ReplicaSetStatus(Struct):
    available_replicas: int = 0
    conditions: Annotated[tuple[ReplicaSetCondition, ...], keyed("type")] = ()
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = always(default=0)
    terminating_replicas: int | None = None


class ReplicaSet(Object):
    kind: str = always(default="ReplicaSet")
    api_version: str = always(default="apps/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: ReplicaSetSpec = always(default=ReplicaSetSpec())
    status: ReplicaSetStatus = always(default=ReplicaSetStatus())
