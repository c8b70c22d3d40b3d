"""Persistent volumes. They are kept and checked; nothing binds, provisions or mounts them yet."""

from typing import Annotated

from msgspec import field

from podfit.api.base import GRANULAR, Object, ResourceList, Struct, Time, always
from podfit.api.core.affinity import NodeSelector
from podfit.api.core.references import ObjectReference, SecretReference
from podfit.api.core.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from podfit.api.meta import ObjectMeta


class AzureFilePersistentVolumeSource(Struct):
    read_only: bool = False
    secret_name: str = always(default="")
    secret_namespace: str | None = always(default=None)
    share_name: str = always(default="")


class CephFSPersistentVolumeSource(Struct):
    monitors: tuple[str, ...] = ()
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    secret_ref: SecretReference | None = None
    user: str = ""


class CinderPersistentVolumeSource(Struct):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None
    volume_id: str = always(default="")


class CSIPersistentVolumeSource(Struct):
    controller_expand_secret_ref: SecretReference | None = None
    controller_publish_secret_ref: SecretReference | None = None
    driver: str = always(default="")
    fs_type: str = ""
    node_expand_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    read_only: bool = False
    volume_attributes: dict[str, str] = field(default_factory=dict)
    volume_handle: str = always(default="")


class FlexPersistentVolumeSource(Struct):
    driver: str = always(default="")
    fs_type: str = ""
    options: dict[str, str] = field(default_factory=dict)
    read_only: bool = False
    secret_ref: SecretReference | None = None


class GlusterfsPersistentVolumeSource(Struct):
    endpoints: str = always(default="")
    endpoints_namespace: str | None = None
    path: str = always(default="")
    read_only: bool = False


class ISCSIPersistentVolumeSource(Struct):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str = ""
    initiator_name: str | None = None
    iqn: str = always(default="")
    iscsi_interface: str = ""
    lun: int = always(default=0)
    portals: tuple[str, ...] = ()
    read_only: bool = False
    secret_ref: SecretReference | None = None
    target_portal: str = always(default="")


class LocalVolumeSource(Struct):
    fs_type: str | None = None
    path: str = always(default="")


class VolumeNodeAffinity(Struct):
    required: NodeSelector | None = None


class RBDPersistentVolumeSource(Struct):
    fs_type: str = ""
    image: str = always(default="")
    keyring: str = ""
    monitors: tuple[str, ...] = ()
    pool: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None
    user: str = ""


class ScaleIOPersistentVolumeSource(Struct):
    fs_type: str = ""
    gateway: str = always(default="")
    protection_domain: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = always(default=None)
    ssl_enabled: bool = False
    storage_mode: str = ""
    storage_pool: str = ""
    system: str = always(default="")
    volume_name: str = ""


class StorageOSPersistentVolumeSource(Struct):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: ObjectReference | None = None
    volume_name: str = ""
    volume_namespace: str = ""


class PersistentVolumeSpec(Struct):
    access_modes: tuple[str, ...] = ()
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    capacity: ResourceList = field(default_factory=dict)
    cephfs: CephFSPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    claim_ref: Annotated[ObjectReference | None, GRANULAR] = None
    csi: CSIPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    mount_options: tuple[str, ...] = ()
    nfs: NFSVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = None
    storage_class_name: str = ""
    storageos: StorageOSPersistentVolumeSource | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(Struct):
    last_phase_transition_time: Time | None = None
    message: str = ""
    phase: str = ""
    reason: str = ""


class PersistentVolume(Object):
    kind: str = always(default="PersistentVolume")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: PersistentVolumeSpec = always(default=PersistentVolumeSpec())
    status: PersistentVolumeStatus = always(default=PersistentVolumeStatus())
