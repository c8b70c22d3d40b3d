"""Columns of `kubectl get` for volumes, claims, and the classes behind them."""

from collections.abc import Iterable
from typing import Any

from podfit.api.columns import AGE, NAME, age, wide
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim, PersistentVolumeClaimSpec
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume, PersistentVolumeSpec
from podfit.api.node.v1.types import RuntimeClass
from podfit.api.registry import Column
from podfit.api.storage.v1.types import CLASS_ANNOTATION, CSIDriver, CSINode, StorageClass, class_of

UNSET = "<unset>"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
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


CLASS = (
    NAME,
    Column("Provisioner", description="Who makes its volumes."),
    Column("ReclaimPolicy", description="What becomes of them when their claims go."),
    Column("VolumeBindingMode", description="When claims are bound."),
    Column("AllowVolumeExpansion", description="Whether claims may grow."),
    AGE,
)


def is_default(storage: StorageClass) -> bool:
    found = storage.metadata.annotations
    return "true" in (found.get(DEFAULT_CLASS), found.get(BETA_DEFAULT_CLASS))


def class_row(storage: StorageClass, now: str) -> list[Any]:
    name = storage.metadata.name
    return [
        f"{name} (default)" if is_default(storage) else name,
        storage.provisioner,
        storage.reclaim_policy or "Delete",
        storage.volume_binding_mode or UNSET,
        bool(storage.allow_volume_expansion),
        age(storage, now),
    ]


DRIVER = (
    NAME,
    Column("AttachRequired", "boolean", description="Whether volumes are attached before they are mounted."),
    Column("PodInfoOnMount", "boolean", description="Whether it is told about the pod."),
    Column("StorageCapacity", "boolean", description="Whether it says what is free."),
    Column("TokenRequests", description="Audiences of the tokens that it gets."),
    Column("RequiresRepublish", "boolean", description="Whether it is called again and again."),
    Column("Modes", description="What kinds of volumes it has."),
    AGE,
)


def driver_row(driver: CSIDriver, now: str) -> list[Any]:
    spec = driver.spec
    return [
        driver.metadata.name,
        spec.attach_required is not False,
        bool(spec.pod_info_on_mount),
        bool(spec.storage_capacity),
        ",".join(request.audience for request in spec.token_requests) if spec.token_requests else UNSET,
        bool(spec.requires_republish),
        ",".join(spec.volume_lifecycle_modes) or "<none>",
        age(driver, now),
    ]


CSI_NODE = (NAME, Column("Drivers", "integer", description="How many CSI drivers are registered on the node."), AGE)


def csi_node_row(node: CSINode, now: str) -> list[Any]:
    return [node.metadata.name, len(node.spec.drivers or ()), age(node, now)]


RUNTIME = (NAME, Column("Handler", description="The node's own name for it."), AGE)


def runtime_row(runtime: RuntimeClass, now: str) -> list[Any]:
    return [runtime.metadata.name, runtime.handler, age(runtime, now)]
