"""Persistent volumes."""

from posixpath import normpath
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.persistentvolumes.claim_validation import POSITIVE, access_modes, class_name, volume_mode
from podfit.api.core.v1.persistentvolumes.types import (
    LocalVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from podfit.api.core.v1.pods.affinity import NodeSelectorRequirement, NodeSelectorTerm
from podfit.api.core.v1.pods.validation.scheduling import validate_node_selector
from podfit.api.core.v1.pods.validation.volume_files import no_parents
from podfit.api.core.v1.pods.validation.volumes import (
    CHECKED_AS,
    NO_TYPE,
    ONE_TYPE,
    REFUSED_AS,
    check_source,
    initiator_length,
)
from podfit.api.core.v1.storage_sources import ISCSIPersistentVolumeSource
from podfit.api.meta.base import ResourceList
from podfit.api.meta.validation.metadata import immutable
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported
from podfit.core.quantity import ZERO

_RECLAIM = ("Delete", "Recycle", "Retain")
_SOURCES = (
    ("host_path", "hostPath"),
    ("gce_persistent_disk", "gcePersistentDisk"),
    ("aws_elastic_block_store", "awsElasticBlockStore"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("nfs", "nfs"),
    ("rbd", "rbd"),
    ("quobyte", "quobyte"),
    ("cephfs", "cephfs"),
    ("iscsi", "iscsi"),
    ("cinder", "cinder"),
    ("fc", "fc"),
    ("flex_volume", "flexVolume"),
    ("azure_file", "azureFile"),
    ("vsphere_volume", "vsphereVolume"),
    ("photon_persistent_disk", "photonPersistentDisk"),
    ("portworx_volume", "portworxVolume"),
    ("azure_disk", "azureDisk"),
    ("scale_io", "scaleIO"),
    ("local", "local"),
    ("storageos", "storageos"),
    ("csi", "csi"),
)
"""Each source's attribute and its name in JSON, in the order of upstream's errors."""
MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_WITH_OPTIONS = (
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azure_file",
    "vsphere_volume",
    "azure_disk",
    "photon_persistent_disk",
)
_SUCCESSORS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def validate_volume(volume: PersistentVolume) -> list[FieldError]:
    spec = volume.spec
    errors = [] if spec.access_modes else [required("spec.accessModes")]
    errors += access_modes(spec.access_modes, "spec") + _capacity(spec.capacity)
    policy = spec.persistent_volume_reclaim_policy
    if policy and policy not in _RECLAIM:
        errors.append(unsupported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM))
    if spec.node_affinity is not None:
        errors += _node_affinity(spec)
    errors += _source(volume)
    if policy == "Recycle" and spec.host_path is not None and normpath(spec.host_path.path) == "/":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden("spec.persistentVolumeReclaimPolicy", text))
    errors += class_name(spec.storage_class_name, "spec.storageClassName") + volume_mode(spec.volume_mode, "spec")
    return errors + _attributes_class(spec) + _mount_options(volume)


def _mount_options(volume: PersistentVolume) -> list[FieldError]:
    """An annotation of old, which goes with the kinds of volumes that there were."""
    if MOUNT_OPTIONS not in volume.metadata.annotations:
        return []
    if any(getattr(volume.spec, attribute) is not None for attribute in _WITH_OPTIONS):
        return []
    return [forbidden(f"metadata.annotations.{MOUNT_OPTIONS}", "may not specify mount options for this volume type")]


def _attributes_class(spec: PersistentVolumeSpec) -> list[FieldError]:
    name, path = spec.volume_attributes_class_name, "spec.volumeAttributesClassName"
    if name is None:
        return []
    errors = class_name(name, path) if name else [required(path, "an empty string is disallowed")]
    if spec.csi is None:
        errors.append(required("spec.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


def _capacity(capacity: ResourceList) -> list[FieldError]:
    errors = [] if capacity else [required("spec.capacity")]
    if capacity.keys() != {"storage"}:
        errors.append(unsupported("spec.capacity", capacity or None, ("storage",)))
    for name, size in sorted(capacity.items()):
        path = f"spec.capacity[{name}]"
        if size < ZERO:
            errors.append(invalid(path, size.value(), "must be a valid resource quantity"))
        if size <= ZERO:
            errors.append(invalid(path, size, POSITIVE))
    return errors


def _node_affinity(spec: PersistentVolumeSpec) -> list[FieldError]:
    assert spec.node_affinity is not None
    wanted, path = spec.node_affinity.required, "spec.nodeAffinity.required"
    if wanted is None:
        return [required(path, "must specify required node constraints")]
    return validate_node_selector(wanted, path)


def _source(volume: PersistentVolume) -> list[FieldError]:
    """Exactly one; a second one is refused, and not looked into."""
    spec = volume.spec
    errors: list[FieldError] = []
    given = 0
    for attribute, name in _SOURCES:
        source = getattr(spec, attribute)
        if source is None:
            continue
        given += 1
        if given > 1 and name != "flexVolume":
            errors.append(forbidden(f"spec.{REFUSED_AS.get(name, name)}", ONE_TYPE))
            continue
        path = f"spec.{CHECKED_AS.get(name, name)}"
        errors += _local(source, path) if isinstance(source, LocalVolumeSource) else check_source(source, path)
        if isinstance(source, ISCSIPersistentVolumeSource) and source.initiator_name is not None:
            errors += initiator_length(volume.metadata.name, source.target_portal, f"{path}.targetportal", of_pod=False)
        if isinstance(source, LocalVolumeSource) and spec.node_affinity is None:
            errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return errors if given else [required("spec", NO_TYPE)]


def _local(source: LocalVolumeSource, path: str) -> list[FieldError]:
    if not source.path:
        return [required(f"{path}.path")]
    return no_parents(source.path, f"{path}.path")


def validate_volume_update(new: PersistentVolume, old: PersistentVolume) -> list[FieldError]:
    errors = validate_volume(new)
    if _sources_of(new, old) != _sources_of(old, old):
        text = "spec.persistentvolumesource is immutable after creation"
        errors.append(forbidden("spec.persistentvolumesource", text))
    errors += immutable(new.spec.volume_mode, old.spec.volume_mode, "volumeMode")
    if old.spec.node_affinity is not None:
        errors += _node_affinity_update(new.spec, old.spec)
    if old.spec.volume_attributes_class_name is not None and new.spec.volume_attributes_class_name is None:
        errors.append(forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden"))
    return errors


def _node_affinity_update(new: PersistentVolumeSpec, old: PersistentVolumeSpec) -> list[FieldError]:
    """It stays; only beta labels may become the labels of today."""
    if _with_todays_labels(old.node_affinity, new.node_affinity) == new.node_affinity:
        return []
    text = "field is immutable, except for updating from beta label to GA"
    return [invalid("nodeAffinity", new.node_affinity, text)]


def _with_todays_labels(old: VolumeNodeAffinity | None, new: VolumeNodeAffinity | None) -> VolumeNodeAffinity | None:
    """`old` with a beta label's successor wherever `new` has it."""
    before, after = _all_terms(old), _all_terms(new)
    if old is None or old.required is None or len(before) != len(after):
        return old
    terms = [
        replace(
            term,
            match_expressions=_todays(term.match_expressions, other.match_expressions),
            match_fields=_todays(term.match_fields, other.match_fields),
        )
        for term, other in zip(before, after, strict=True)
    ]
    return replace(old, required=replace(old.required, node_selector_terms=tuple(terms)))


def _all_terms(affinity: VolumeNodeAffinity | None) -> tuple[NodeSelectorTerm, ...]:
    return affinity.required.node_selector_terms if affinity and affinity.required else ()


def _todays(
    old: tuple[NodeSelectorRequirement, ...], new: tuple[NodeSelectorRequirement, ...]
) -> tuple[NodeSelectorRequirement, ...]:
    if len(old) != len(new):
        return old
    return tuple(
        replace(was, key=now.key) if _SUCCESSORS.get(was.key) == now.key else was
        for was, now in zip(old, new, strict=True)
    )


def _sources_of(volume: PersistentVolume, old: PersistentVolume) -> list[Any]:
    """All but the secret for growing, which may be given later."""
    csi, before = volume.spec.csi, old.spec.csi
    if csi is not None and before is not None and before.controller_expand_secret_ref is None:
        csi = replace(csi, controller_expand_secret_ref=None)
    return [csi if attribute == "csi" else getattr(volume.spec, attribute) for attribute, _ in _SOURCES]
