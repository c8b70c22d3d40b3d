"""Volume sources of a pod.

podfit mounts emptyDir, hostPath, configMap, secret, downwardAPI and projected volumes; the others are stored as given,
so that no manifest loses a field, and a node says which of them it cannot mount.
"""

from msgspec import field

from podfit.api.core.v1 import storage_sources as storage
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaimTemplate
from podfit.api.core.v1.references import ObjectFieldSelector, ResourceFieldSelector
from podfit.api.meta.base import Struct, always
from podfit.api.meta.v1.types import LabelSelector
from podfit.core.quantity import Quantity


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


class EphemeralVolumeSource(Struct):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class GitRepoVolumeSource(Struct):
    directory: str = ""
    repository: str = always(default="")
    revision: str = ""


class ImageVolumeSource(Struct):
    pull_policy: str = ""
    reference: str = ""


class PersistentVolumeClaimVolumeSource(Struct):
    claim_name: str = always(default="")
    read_only: bool = False


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


class SecretVolumeSource(Struct):
    default_mode: int | None = None
    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None
    secret_name: str = ""


class Volume(Struct):
    name: str = always(default="")
    aws_elastic_block_store: storage.AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: storage.AzureDiskVolumeSource | None = None
    azure_file: storage.AzureFileVolumeSource | None = None
    cephfs: storage.CephFSVolumeSource | None = None
    cinder: storage.CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: storage.CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = field(default=None, name="downwardAPI")
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: storage.FCVolumeSource | None = None
    flex_volume: storage.FlexVolumeSource | None = None
    flocker: storage.FlockerVolumeSource | None = None
    gce_persistent_disk: storage.GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: storage.GlusterfsVolumeSource | None = None
    host_path: storage.HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: storage.ISCSIVolumeSource | None = None
    nfs: storage.NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: storage.PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: storage.PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: storage.QuobyteVolumeSource | None = None
    rbd: storage.RBDVolumeSource | None = None
    scale_io: storage.ScaleIOVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    storageos: storage.StorageOSVolumeSource | None = None
    vsphere_volume: storage.VsphereVirtualDiskVolumeSource | None = None
