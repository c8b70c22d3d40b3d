"""Defaults of volumes, claims to them, and the classes and drivers behind."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim, PersistentVolumeClaimSpec
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume, PersistentVolumeSpec, PersistentVolumeStatus
from podfit.api.core.v1.pods.volume_defaults import default_azure_disk, default_claim, default_host_path
from podfit.api.core.v1.references import TypedLocalObjectReference, TypedObjectReference
from podfit.api.core.v1.storage_sources import (
    ISCSIPersistentVolumeSource,
    RBDPersistentVolumeSource,
    ScaleIOPersistentVolumeSource,
)
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, fill, inside, rounded
from podfit.api.storage.v1.types import CSIDriver, CSIDriverSpec, StorageClass

_OF_CORE = ("", None)


def _volume(volume: PersistentVolume) -> PersistentVolume:
    return inside(volume, spec=_volume_spec, status=_volume_status)


def _volume_spec(spec: PersistentVolumeSpec) -> PersistentVolumeSpec:
    filled = fill(spec, persistent_volume_reclaim_policy="Retain", volume_mode="Filesystem")
    return inside(
        filled,
        capacity=rounded,
        host_path=default_host_path,
        azure_disk=default_azure_disk,
        iscsi=_iscsi,
        rbd=_rbd,
        scale_io=_scale_io,
    )


def _volume_status(status: PersistentVolumeStatus) -> PersistentVolumeStatus:
    return fill(status, phase="Pending")


def _iscsi(source: ISCSIPersistentVolumeSource) -> ISCSIPersistentVolumeSource:
    return fill(source, iscsi_interface="default")


def _rbd(source: RBDPersistentVolumeSource) -> RBDPersistentVolumeSource:
    return fill(source, pool="rbd", user="admin", keyring="/etc/ceph/keyring")


def _scale_io(source: ScaleIOPersistentVolumeSource) -> ScaleIOPersistentVolumeSource:
    return fill(source, storage_mode="ThinProvisioned", fs_type="xfs")


def _claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    claim = inside(claim, spec=default_claim)
    return inside(claim, status=lambda status: fill(status, phase="Pending"))


def with_sources(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """The two names of the source say the same, as far as the older one can."""
    return inside(claim, spec=_sources)


def _sources(spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
    source, ref = spec.data_source, spec.data_source_ref
    if source is not None and ref is None:
        given = TypedObjectReference(name=source.name, api_group=source.api_group, kind=source.kind)
        return change(spec, data_source_ref=given)
    local = ref is not None and ref.namespace in _OF_CORE
    if ref is not None and source is None and local and _clonable(ref):
        older = TypedLocalObjectReference(name=ref.name, api_group=ref.api_group, kind=ref.kind)
        return change(spec, data_source=older)
    return spec


def _clonable(ref: TypedObjectReference) -> bool:
    """Kinds that the older name may hold."""
    if ref.kind == "PersistentVolumeClaim":
        return ref.api_group in _OF_CORE
    return (ref.api_group, ref.kind) == ("snapshot.storage.k8s.io", "VolumeSnapshot")


def _class(storage: StorageClass) -> StorageClass:
    return fill(storage, reclaim_policy="Delete", volume_binding_mode="Immediate")


def _driver(driver: CSIDriver) -> CSIDriver:
    return inside(driver, spec=_driver_spec)


def _driver_spec(spec: CSIDriverSpec) -> CSIDriverSpec:
    return fill(
        spec,
        attach_required=True,
        pod_info_on_mount=False,
        storage_capacity=False,
        se_linux_mount=False,
        fs_group_policy="ReadWriteOnceWithFSType",
        requires_republish=False,
        volume_lifecycle_modes=("Persistent",),
    )


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {
    PersistentVolume: _volume,
    PersistentVolumeClaim: _claim,
    StorageClass: _class,
    CSIDriver: _driver,
}
