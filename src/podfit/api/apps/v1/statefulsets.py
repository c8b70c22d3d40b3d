"""Stateful sets: pods with a name and storage of their own."""

from typing import Annotated

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.meta.base import IntOrString, Object, Struct, Time, always, keyed
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta


class RollingUpdateStatefulSetStrategy(Struct):
    max_unavailable: IntOrString | None = None
    partition: int | None = None


class StatefulSetOrdinals(Struct):
    start: int = always(default=0)


class StatefulSetPersistentVolumeClaimRetentionPolicy(Struct):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetUpdateStrategy(Struct):
    rolling_update: RollingUpdateStatefulSetStrategy | None = None
    type: str = ""


class StatefulSetSpec(Struct):
    min_ready_seconds: int = 0
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    pod_management_policy: str = ""
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector | None = always(default=None)
    service_name: str = always(default="")
    template: PodTemplateSpec = always(default=PodTemplateSpec())
    update_strategy: StatefulSetUpdateStrategy = always(default=StatefulSetUpdateStrategy())
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()


class StatefulSetCondition(Struct):
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")
    type: str = always(default="")


class StatefulSetStatus(Struct):
    available_replicas: int = always(default=0)
    collision_count: int | None = None
    conditions: Annotated[tuple[StatefulSetCondition, ...], keyed("type")] = ()
    current_replicas: int = 0
    current_revision: str = ""
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = always(default=0)
    update_revision: str = ""
    updated_replicas: int = 0


class StatefulSet(Object):
    kind: str = always(default="StatefulSet")
    api_version: str = always(default="apps/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: StatefulSetSpec = always(default=StatefulSetSpec())
    status: StatefulSetStatus = always(default=StatefulSetStatus())
