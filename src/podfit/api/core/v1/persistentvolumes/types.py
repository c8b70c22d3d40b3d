"""Persistent volumes."""

from typing import Annotated

from msgspec import field

from podfit.api.core.v1 import storage_sources as storage
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.affinity import NodeSelector
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.base import GRANULAR, Object, ResourceList, Struct, Time, always
from podfit.api.meta.v1.types import ObjectMeta


class LocalVolumeSource(Struct):
    fs_type: str | None = None
    path: str = always(default="")


class VolumeNodeAffinity(Struct):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct):
    access_modes: tuple[str, ...] = ()
    aws_elastic_block_store: storage.AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: storage.AzureDiskVolumeSource | None = None
    azure_file: storage.AzureFilePersistentVolumeSource | None = None
    capacity: ResourceList = field(default_factory=dict)
    cephfs: storage.CephFSPersistentVolumeSource | None = None
    cinder: storage.CinderPersistentVolumeSource | None = None
    claim_ref: Annotated[ObjectReference | None, GRANULAR] = None
    csi: storage.CSIPersistentVolumeSource | None = None
    fc: storage.FCVolumeSource | None = None
    flex_volume: storage.FlexPersistentVolumeSource | None = None
    flocker: storage.FlockerVolumeSource | None = None
    gce_persistent_disk: storage.GCEPersistentDiskVolumeSource | None = None
    glusterfs: storage.GlusterfsPersistentVolumeSource | None = None
    host_path: storage.HostPathVolumeSource | None = None
    iscsi: storage.ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    mount_options: tuple[str, ...] = ()
    nfs: storage.NFSVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    photon_persistent_disk: storage.PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: storage.PortworxVolumeSource | None = None
    quobyte: storage.QuobyteVolumeSource | None = None
    rbd: storage.RBDPersistentVolumeSource | None = None
    scale_io: storage.ScaleIOPersistentVolumeSource | None = None
    storage_class_name: str = ""
    storageos: storage.StorageOSPersistentVolumeSource | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    vsphere_volume: storage.VsphereVirtualDiskVolumeSource | None = None


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


CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""Names the class of a volume or claim, as was done before they had a field for it."""


def class_of(claim: PersistentVolumeClaim) -> str:
    """The name of its class, empty for none: what the old annotation says counts before the field, as upstream."""
    named = claim.metadata.annotations.get(CLASS_ANNOTATION)
    return named if named is not None else claim.spec.storage_class_name or ""
