"""The kinds of storage.k8s.io."""

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.storage.v1.columns import CLASS, CSI_NODE, DRIVER, class_row, csi_node_row, driver_row
from podfit.api.storage.v1.types import CSIDriver, CSINode, StorageClass

_GROUP = "storage.k8s.io"

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=StorageClass,
        group=_GROUP,
        resource="storageclasses",
        singular="storageclass",
        short_names=("sc",),
        namespaced=False,
        columns=CLASS,
        row=class_row,
    ),
    ResourceInfo(
        type=CSIDriver,
        unconditional=False,
        group=_GROUP,
        resource="csidrivers",
        singular="csidriver",
        namespaced=False,
        counted=lambda o: (o.spec.token_requests, o.spec.requires_republish, o.spec.se_linux_mount),
        first_generation=0,
        columns=DRIVER,
        row=driver_row,
    ),
    ResourceInfo(
        type=CSINode,
        unconditional=False,
        group=_GROUP,
        resource="csinodes",
        singular="csinode",
        namespaced=False,
        columns=CSI_NODE,
        row=csi_node_row,
    ),
)
