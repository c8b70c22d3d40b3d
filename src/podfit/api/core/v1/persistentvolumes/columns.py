"""Columns of `kubectl get` for persistent volumes and claims."""

from collections.abc import Iterable
from typing import Any

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim, PersistentVolumeClaimSpec
from podfit.api.core.v1.persistentvolumes.types import (
    CLASS_ANNOTATION,
    PersistentVolume,
    PersistentVolumeSpec,
    class_of,
)
from podfit.api.meta.columns import AGE, NAME, age, wide
from podfit.api.meta.resource_info import Column

UNSET = "<unset>"
_SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS = Column("StorageClass", description="The class of storage.")
_ATTRIBUTES = Column("VolumeAttributesClass", description="The class of the volume's attributes.")
_MODE = wide("VolumeMode", "A file system or a bare device.")
_MODES = Column("Access Modes", description="How it may be mounted.")
CLAIM = (
    NAME,
    Column("Status", description="Pending, Bound or Lost."),
    Column("Volume", description="The volume that it is bound to."),
    Column("Capacity", description="What the volume holds."),
    _MODES,
    _CLASS,
    _ATTRIBUTES,
    AGE,
    _MODE,
)


def claim_row(claim: PersistentVolumeClaim, now: str) -> list[Any]:
    spec, status = claim.spec, claim.status
    bound = bool(spec.volume_name)
    return [
        claim.metadata.name,
        "Terminating" if claim.metadata.deletion_timestamp else status.phase,
        spec.volume_name,
        str(status.capacity["storage"]) if bound and "storage" in status.capacity else "0" if bound else "",
        _modes(status.access_modes) if bound else "",
        class_of(claim),
        _attributes(spec),
        age(claim, now),
        spec.volume_mode or UNSET,
    ]


def _attributes(spec: PersistentVolumeClaimSpec | PersistentVolumeSpec) -> str:
    return UNSET if spec.volume_attributes_class_name is None else spec.volume_attributes_class_name


def _modes(modes: Iterable[str]) -> str:
    return ",".join(_SHORT[mode] for mode in _SHORT if mode in tuple(modes))


VOLUME = (
    NAME,
    Column("Capacity", description="What it holds."),
    _MODES,
    Column("Reclaim Policy", description="What becomes of it when its claim goes."),
    Column("Status", description="Whether it is free, bound or released."),
    Column("Claim", description="The claim that it is bound to."),
    _CLASS,
    _ATTRIBUTES,
    Column("Reason", description="Why something failed."),
    AGE,
    _MODE,
)


def volume_row(volume: PersistentVolume, now: str) -> list[Any]:
    spec, claim = volume.spec, volume.spec.claim_ref
    return [
        volume.metadata.name,
        str(spec.capacity.get("storage", "0")),
        _modes(spec.access_modes),
        spec.persistent_volume_reclaim_policy,
        "Terminating" if volume.metadata.deletion_timestamp else volume.status.phase,
        f"{claim.namespace}/{claim.name}" if claim else "",
        volume.metadata.annotations.get(CLASS_ANNOTATION, spec.storage_class_name),
        _attributes(spec),
        volume.status.reason,
        age(volume, now),
        spec.volume_mode or UNSET,
    ]
