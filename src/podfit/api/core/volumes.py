"""Volume sources of a pod.

podfit mounts emptyDir, hostPath, configMap, secret, downwardAPI and projected volumes; the others are stored as given,
so that no manifest loses a field, and a node says which of them it cannot mount.
"""

from typing import ClassVar

from msgspec import field

from podfit.api.base import ResourceList, Struct, always
from podfit.api.core.references import LocalObjectReference, ObjectFieldSelector, ResourceFieldSelector
from podfit.api.meta import LabelSelector, ObjectMeta
from podfit.core.quantity import Quantity


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


class AzureFileVolumeSource(Struct):
    read_only: bool = False
    secret_name: str = always(default="")
    share_name: str = always(default="")


class CSIVolumeSource(Struct):
    driver: str = always(default="")
    fs_type: str = ""
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    volume_attributes: dict[str, str] = field(default_factory=dict)


class CephFSVolumeSource(Struct):
    monitors: tuple[str, ...] = ()
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    user: str = ""


class CinderVolumeSource(Struct):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_id: str = always(default="")


class KeyToPath(Struct):
    key: str = always(default="")
    mode: int | None = None
    path: str = always(default="")


class ConfigMapVolumeSource(Struct):
    name: str = ""
    default_mode: int | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardAPIVolumeFile(Struct):
    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str = always(default="")
    resource_field_ref: ResourceFieldSelector | None = None


class DownwardAPIVolumeSource(Struct):
    default_mode: int | None = None
    items: tuple[DownwardAPIVolumeFile, ...] = ()


class EmptyDirVolumeSource(Struct):
    medium: str = ""
    size_limit: Quantity | None = None


class TypedLocalObjectReference(Struct):
    whole: ClassVar[bool] = True
    name: str = always(default="")
    api_group: str | None = always(default=None)
    kind: str = always(default="")


class TypedObjectReference(Struct):
    name: str = always(default="")
    api_group: str | None = always(default=None)
    kind: str = always(default="")
    namespace: str | None = None


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


class EphemeralVolumeSource(Struct):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class FCVolumeSource(Struct):
    fs_type: str = ""
    lun: int = 0
    read_only: bool = False
    target_wwns: tuple[str, ...] = ()
    wwids: tuple[str, ...] = ()


class FlexVolumeSource(Struct):
    driver: str = always(default="")
    fs_type: str = ""
    options: dict[str, str] = field(default_factory=dict)
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class FlockerVolumeSource(Struct):
    dataset_name: str = ""
    dataset_uuid: str = ""


class GCEPersistentDiskVolumeSource(Struct):
    fs_type: str = ""
    partition: int = 0
    pd_name: str = always(default="")
    read_only: bool = False


class GitRepoVolumeSource(Struct):
    directory: str = ""
    repository: str = always(default="")
    revision: str = ""


class GlusterfsVolumeSource(Struct):
    endpoints: str = always(default="")
    path: str = always(default="")
    read_only: bool = False


class HostPathVolumeSource(Struct):
    type: str | None = None
    path: str = always(default="")


class ISCSIVolumeSource(Struct):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str = ""
    initiator_name: str = ""
    iqn: str = always(default="")
    iscsi_interface: str = ""
    lun: int = always(default=0)
    portals: tuple[str, ...] = ()
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    target_portal: str = always(default="")


class ImageVolumeSource(Struct):
    pull_policy: str = ""
    reference: str = ""


class NFSVolumeSource(Struct):
    path: str = always(default="")
    read_only: bool = False
    server: str = always(default="")


class PersistentVolumeClaimVolumeSource(Struct):
    claim_name: str = always(default="")
    read_only: bool = False


class PhotonPersistentDiskVolumeSource(Struct):
    fs_type: str = ""
    pd_id: str = always(default="")


class PortworxVolumeSource(Struct):
    fs_type: str = ""
    read_only: bool = False
    volume_id: str = always(default="")


class ClusterTrustBundleProjection(Struct):
    name: str = ""
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: str = always(default="")
    signer_name: str = ""


class ConfigMapProjection(Struct):
    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardAPIProjection(Struct):
    items: tuple[DownwardAPIVolumeFile, ...] = ()


class PodCertificateProjection(Struct):
    certificate_chain_path: str = ""
    credential_bundle_path: str = ""
    key_path: str = ""
    key_type: str = always(default="")
    max_expiration_seconds: int = 0
    signer_name: str = always(default="")
    user_annotations: dict[str, str] = field(default_factory=dict)


class SecretProjection(Struct):
    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class ServiceAccountTokenProjection(Struct):
    audience: str = ""
    expiration_seconds: int | None = None
    path: str = always(default="")


class VolumeProjection(Struct):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = field(default=None, name="downwardAPI")
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(Struct):
    default_mode: int | None = None
    sources: tuple[VolumeProjection, ...] = ()


class QuobyteVolumeSource(Struct):
    group: str = ""
    read_only: bool = False
    registry: str = always(default="")
    tenant: str = ""
    user: str = ""
    volume: str = always(default="")


class RBDVolumeSource(Struct):
    fs_type: str = ""
    image: str = always(default="")
    keyring: str = ""
    monitors: tuple[str, ...] = ()
    pool: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    user: str = ""


class ScaleIOVolumeSource(Struct):
    fs_type: str = ""
    gateway: str = always(default="")
    protection_domain: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference = always(default=LocalObjectReference())
    ssl_enabled: bool = False
    storage_mode: str = ""
    storage_pool: str = ""
    system: str = always(default="")
    volume_name: str = ""


class SecretVolumeSource(Struct):
    default_mode: int | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None
    secret_name: str = ""


class StorageOSVolumeSource(Struct):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_name: str = ""
    volume_namespace: str = ""


class VsphereVirtualDiskVolumeSource(Struct):
    fs_type: str = ""
    storage_policy_id: str = ""
    storage_policy_name: str = ""
    volume_path: str = always(default="")


class Volume(Struct):
    name: str = always(default="")
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = field(default=None, name="downwardAPI")
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
