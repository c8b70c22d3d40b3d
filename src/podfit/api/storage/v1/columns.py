"""Columns of `kubectl get` for volumes, claims, and the classes behind them."""

from typing import Any

from podfit.api.core.v1.persistentvolumes.columns import UNSET
from podfit.api.meta.columns import AGE, NAME, age
from podfit.api.meta.resource_info import Column
from podfit.api.storage.v1.types import CSIDriver, CSINode, StorageClass

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"


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
