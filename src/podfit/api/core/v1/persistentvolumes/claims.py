"""Persistent volume claims: what a pod, or a stateful set for its pods, asks of storage."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.references import TypedLocalObjectReference, TypedObjectReference
from podfit.api.meta.base import GRANULAR, Object, ResourceList, Struct, Time, always, keyed
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta


class VolumeResourceRequirements(Struct):
    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)


class PersistentVolumeClaimSpec(Struct):
    access_modes: tuple[str, ...] = ()
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements = always(default=VolumeResourceRequirements())
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimTemplate(Struct):
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: PersistentVolumeClaimSpec = always(default=PersistentVolumeClaimSpec())


class PersistentVolumeClaimCondition(Struct):
    last_probe_time: Time | None = always(default=None)
    last_transition_time: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    status: str = always(default="")
    type: str = always(default="")


class ModifyVolumeStatus(Struct):
    status: str = always(default="")
    target_volume_attributes_class_name: str = ""


class PersistentVolumeClaimStatus(Struct):
    access_modes: tuple[str, ...] = ()
    allocated_resource_statuses: Annotated[dict[str, str], GRANULAR] = field(default_factory=dict)
    allocated_resources: ResourceList = field(default_factory=dict)
    capacity: ResourceList = field(default_factory=dict)
    conditions: Annotated[tuple[PersistentVolumeClaimCondition, ...], keyed("type")] = ()
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    phase: str = ""


class PersistentVolumeClaim(Object):
    kind: str = always(default="PersistentVolumeClaim")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: PersistentVolumeClaimSpec = always(default=PersistentVolumeClaimSpec())
    status: PersistentVolumeClaimStatus = always(default=PersistentVolumeClaimStatus())
