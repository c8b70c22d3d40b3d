"""Volume sources of a pod.

podfit mounts emptyDir, hostPath, configMap, secret, downwardAPI and projected volumes; the others are stored as given, so that
no manifest loses a field, and a node says which of them it cannot mount.
"""

from msgspec import field

from podfit.api.base import always, ResourceList, Struct
from podfit.api.core.references import LocalObjectReference, ObjectFieldSelector, ResourceFieldSelector
from podfit.api.meta import LabelSelector, ObjectMeta
from podfit.core.quantity import Quantity


class AWSElasticBlockStoreVolumeSource(Struct):
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False
    volume_id: str = always("")


class AzureDiskVolumeSource(Struct):
    caching_mode: str = ""
    disk_name: str = always("")
    disk_uri: str = always("")
    fs_type: str = ""
    kind: str = ""
    read_only: bool = False


class AzureFileVolumeSource(Struct):
    read_only: bool = False
    secret_name: str = always("")
    share_name: str = always("")


class CSIVolumeSource(Struct):
    driver: str = always("")
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
    volume_id: str = always("")


class KeyToPath(Struct):
    key: str = always("")
    mode: int | None = None
    path: str = always("")


class ConfigMapVolumeSource(Struct):
    name: str = ""
    default_mode: int | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardAPIVolumeFile(Struct):
    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str = always("")
    resource_field_ref: ResourceFieldSelector | None = None


class DownwardAPIVolumeSource(Struct):
    default_mode: int | None = None
    items: tuple[DownwardAPIVolumeFile, ...] = ()


class EmptyDirVolumeSource(Struct):
    medium: str = ""
    size_limit: Quantity | None = None


class TypedLocalObjectReference(Struct):
    name: str = always("")
    api_group: str = ""
    kind: str = always("")


class TypedObjectReference(Struct):
    name: str = always("")
    api_group: str = ""
    kind: str = always("")
    namespace: str = ""


class VolumeResourceRequirements(Struct):
    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)


class PersistentVolumeClaimSpec(Struct):
    access_modes: tuple[str, ...] = ()
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements = always(VolumeResourceRequirements())
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str = ""
    volume_mode: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimTemplate(Struct):
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PersistentVolumeClaimSpec = always(PersistentVolumeClaimSpec())


class EphemeralVolumeSource(Struct):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class FCVolumeSource(Struct):
    fs_type: str = ""
    lun: int = 0
    read_only: bool = False
    target_wwns: tuple[str, ...] = ()
    wwids: tuple[str, ...] = ()


class FlexVolumeSource(Struct):
    driver: str = always("")
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
    pd_name: str = always("")
    read_only: bool = False


class GitRepoVolumeSource(Struct):
    directory: str = ""
    repository: str = always("")
    revision: str = ""


class GlusterfsVolumeSource(Struct):
    endpoints: str = always("")
    path: str = always("")
    read_only: bool = False


class HostPathVolumeSource(Struct):
    type: str = ""
    path: str = always("")


class ISCSIVolumeSource(Struct):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str = ""
    initiator_name: str = ""
    iqn: str = always("")
    iscsi_interface: str = ""
    lun: int = always(0)
    portals: tuple[str, ...] = ()
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    target_portal: str = always("")


class ImageVolumeSource(Struct):
    pull_policy: str = ""
    reference: str = ""


class NFSVolumeSource(Struct):
    path: str = always("")
    read_only: bool = False
    server: str = always("")


class PersistentVolumeClaimVolumeSource(Struct):
    claim_name: str = always("")
    read_only: bool = False


class PhotonPersistentDiskVolumeSource(Struct):
    fs_type: str = ""
    pd_id: str = always("")


class PortworxVolumeSource(Struct):
    fs_type: str = ""
    read_only: bool = False
    volume_id: str = always("")


class ClusterTrustBundleProjection(Struct):
    name: str = ""
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: str = always("")
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
    key_type: str = always("")
    max_expiration_seconds: int = 0
    signer_name: str = always("")
    user_annotations: dict[str, str] = field(default_factory=dict)


class SecretProjection(Struct):
    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class ServiceAccountTokenProjection(Struct):
    audience: str = ""
    expiration_seconds: int | None = None
    path: str = always("")


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
    registry: str = always("")
    tenant: str = ""
    user: str = ""
    volume: str = always("")


class RBDVolumeSource(Struct):
    fs_type: str = ""
    image: str = always("")
    keyring: str = ""
    monitors: tuple[str, ...] = ()
    pool: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    user: str = ""


class ScaleIOVolumeSource(Struct):
    fs_type: str = ""
    gateway: str = always("")
    protection_domain: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference = always(LocalObjectReference())
    ssl_enabled: bool = False
    storage_mode: str = ""
    storage_pool: str = ""
    system: str = always("")
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
    volume_path: str = always("")


class Volume(Struct):
    name: str = always("")
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
