"""storage.k8s.io/v1: classes of volumes, and the drivers that make and mount them."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1.topology import TopologySelectorTerm
from podfit.api.meta.base import ATOMIC, SET_REPLACED, Object, Struct, always, keyed
from podfit.api.meta.v1.types import ObjectMeta


class StorageClass(Object):
    kind: str = always(default="StorageClass")
    api_version: str = always(default="storage.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    allow_volume_expansion: bool | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    mount_options: tuple[str, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    provisioner: str = always(default="")
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None


class TokenRequest(Struct):
    audience: str = always(default="")
    expiration_seconds: int | None = None


class CSIDriverSpec(Struct):
    attach_required: bool | None = None
    fs_group_policy: str | None = None
    node_allocatable_update_period_seconds: int | None = None
    pod_info_on_mount: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    service_account_token_in_secrets: bool | None = None
    storage_capacity: bool | None = None
    token_requests: Annotated[tuple[TokenRequest, ...], ATOMIC] = ()
    volume_lifecycle_modes: Annotated[tuple[str, ...], SET_REPLACED] = ()


class CSIDriver(Object):
    kind: str = always(default="CSIDriver")
    api_version: str = always(default="storage.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: CSIDriverSpec = always(default=CSIDriverSpec())


class VolumeNodeResources(Struct):
    count: int | None = None


class CSINodeDriver(Struct):
    name: str = always(default="")
    allocatable: VolumeNodeResources | None = None
    node_id: str = always(default="", name="nodeID")
    topology_keys: Annotated[tuple[str, ...] | None, ATOMIC] = always(default=None)


class CSINodeSpec(Struct):
    drivers: Annotated[tuple[CSINodeDriver, ...] | None, keyed("name")] = always(default=None)


class CSINode(Object):
    kind: str = always(default="CSINode")
    api_version: str = always(default="storage.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: CSINodeSpec = always(default=CSINodeSpec())
