"""Replication controllers, which replica sets came after."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.meta.base import ATOMIC, Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import ObjectMeta


class ReplicationControllerSpec(Struct):
    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: Annotated[dict[str, str], ATOMIC] = field(default_factory=dict)
    template: PodTemplateSpec | None = None


class ReplicationControllerCondition(Struct):
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")
    type: str = always(default="")


class ReplicationControllerStatus(Struct):
    available_replicas: int = 0
    conditions: Annotated[tuple[ReplicationControllerCondition, ...], keyed("type")] = ()
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = always(default=0)


class ReplicationController(Object):
    kind: str = always(default="ReplicationController")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: ReplicationControllerSpec = always(default=ReplicationControllerSpec())
    status: ReplicationControllerStatus = always(default=ReplicationControllerStatus())
