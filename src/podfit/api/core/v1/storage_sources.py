"""Storage from outside of the cluster, which a pod may name itself, or a persistent volume may stand for.

A pod's secret is in its own namespace, a volume's in one that it names: where a source needs one there are two kinds of
one shape. podfit mounts hostPath; the others are kept as given, so that no manifest loses a field.
"""

from msgspec import field

from podfit.api.core.v1.references import LocalObjectReference, ObjectReference, SecretReference
from podfit.api.meta.base import Struct, always


class AWSElasticBlockStoreVolumeSource(Struct):
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False
    volume_id: str = always(default="")


class AzureDiskVolumeSource(Struct):
    caching_mode: str = ""
    disk_name: str = always(default="")
    disk_uri: str = always(default="")
    fs_type: str = ""
    kind: str = ""
    read_only: bool | None = None


class _AzureFile(Struct):
    read_only: bool = False
    secret_name: str = always(default="")
    share_name: str = always(default="")


class AzureFileVolumeSource(_AzureFile):
    pass


class AzureFilePersistentVolumeSource(_AzureFile):
    secret_namespace: str | None = always(default=None)


class _CephFS(Struct):
    monitors: tuple[str, ...] = ()
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    user: str = ""


class CephFSVolumeSource(_CephFS):
    secret_ref: LocalObjectReference | None = None


class CephFSPersistentVolumeSource(_CephFS):
    secret_ref: SecretReference | None = None


class _Cinder(Struct):
    fs_type: str = ""
    read_only: bool = False
    volume_id: str = always(default="")


class CinderVolumeSource(_Cinder):
    secret_ref: LocalObjectReference | None = None


class CinderPersistentVolumeSource(_Cinder):
    secret_ref: SecretReference | None = None


class _CSI(Struct):
    driver: str = always(default="")
    fs_type: str = ""
    read_only: bool = False
    volume_attributes: dict[str, str] = field(default_factory=dict)


class CSIVolumeSource(_CSI):
    node_publish_secret_ref: LocalObjectReference | None = None


class CSIPersistentVolumeSource(_CSI):
    controller_expand_secret_ref: SecretReference | None = None
    controller_publish_secret_ref: SecretReference | None = None
    node_expand_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    volume_handle: str = always(default="")


class FCVolumeSource(Struct):
    fs_type: str = ""
    lun: int | None = None
    read_only: bool = False
    target_wwns: tuple[str, ...] = ()
    wwids: tuple[str, ...] = ()


class _Flex(Struct):
    driver: str = always(default="")
    fs_type: str = ""
    options: dict[str, str] = field(default_factory=dict)
    read_only: bool = False


class FlexVolumeSource(_Flex):
    secret_ref: LocalObjectReference | None = None


class FlexPersistentVolumeSource(_Flex):
    secret_ref: SecretReference | None = None


class FlockerVolumeSource(Struct):
    dataset_name: str = ""
    dataset_uuid: str = ""


class GCEPersistentDiskVolumeSource(Struct):
    fs_type: str = ""
    partition: int = 0
    pd_name: str = always(default="")
    read_only: bool = False


class _Glusterfs(Struct):
    endpoints: str = always(default="")
    path: str = always(default="")
    read_only: bool = False


class GlusterfsVolumeSource(_Glusterfs):
    pass


class GlusterfsPersistentVolumeSource(_Glusterfs):
    endpoints_namespace: str | None = None


class HostPathVolumeSource(Struct):
    type: str | None = None
    path: str = always(default="")


class _ISCSI(Struct):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str = ""
    iqn: str = always(default="")
    iscsi_interface: str = ""
    lun: int = always(default=0)
    portals: tuple[str, ...] = ()
    read_only: bool = False
    target_portal: str = always(default="")


class ISCSIVolumeSource(_ISCSI):
    initiator_name: str = ""
    secret_ref: LocalObjectReference | None = None


class ISCSIPersistentVolumeSource(_ISCSI):
    initiator_name: str | None = None
    secret_ref: SecretReference | None = None


class NFSVolumeSource(Struct):
    path: str = always(default="")
    read_only: bool = False
    server: str = always(default="")


class PhotonPersistentDiskVolumeSource(Struct):
    fs_type: str = ""
    pd_id: str = always(default="")


class PortworxVolumeSource(Struct):
    fs_type: str = ""
    read_only: bool = False
    volume_id: str = always(default="")


class QuobyteVolumeSource(Struct):
    group: str = ""
    read_only: bool = False
    registry: str = always(default="")
    tenant: str = ""
    user: str = ""
    volume: str = always(default="")


class _RBD(Struct):
    fs_type: str = ""
    image: str = always(default="")
    keyring: str = ""
    monitors: tuple[str, ...] = ()
    pool: str = ""
    read_only: bool = False
    user: str = ""


class RBDVolumeSource(_RBD):
    secret_ref: LocalObjectReference | None = None


class RBDPersistentVolumeSource(_RBD):
    secret_ref: SecretReference | None = None


class _ScaleIO(Struct):
    fs_type: str = ""
    gateway: str = always(default="")
    protection_domain: str = ""
    read_only: bool = False
    ssl_enabled: bool = False
    storage_mode: str = ""
    storage_pool: str = ""
    system: str = always(default="")
    volume_name: str = ""


class ScaleIOVolumeSource(_ScaleIO):
    secret_ref: LocalObjectReference = always(default=LocalObjectReference())


class ScaleIOPersistentVolumeSource(_ScaleIO):
    secret_ref: SecretReference | None = always(default=None)


class _StorageOS(Struct):
    fs_type: str = ""
    read_only: bool = False
    volume_name: str = ""
    volume_namespace: str = ""


class StorageOSVolumeSource(_StorageOS):
    secret_ref: LocalObjectReference | None = None


class StorageOSPersistentVolumeSource(_StorageOS):
    secret_ref: ObjectReference | None = None


class VsphereVirtualDiskVolumeSource(Struct):
    fs_type: str = ""
    storage_policy_id: str = ""
    storage_policy_name: str = ""
    volume_path: str = always(default="")
