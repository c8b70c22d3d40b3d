"""Volume sources outside of the node: disks and network storage, named by a pod or by a persistent volume."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.core.v1 import storage_sources as storage
from podfit.api.core.v1.references import LocalObjectReference, SecretReference
from podfit.api.meta.base import json_name
from podfit.api.meta.validation import names
from podfit.core.fields import FieldError, invalid, required, too_long, unsupported

_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)\Z")
_EUI = re.compile(r"^eui.[A-Za-z0-9]{16}\Z")
_NAA = re.compile(r"^naa.[A-Za-z0-9]{32}\Z")
_INITIATORS = {"iqn": _IQN, "eui": _EUI, "naa": _NAA}
_PARTITION = "must be between 1 and 255, inclusive"
_LUN = "must be between 0 and 255, inclusive"
_REGISTRY = "must be a host:port pair or multiple pairs separated by commas"
_CACHING = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def needed(source: Any, path: str, *attributes: str) -> list[FieldError]:
    """An error for each of these attributes that is empty."""
    return [required(f"{path}.{json_name(name)}") for name in attributes if not getattr(source, name)]


def driver_name(name: str, path: str) -> list[FieldError]:
    """Of a CSI driver: a domain in letters of either case, of a label's length."""
    if not name:
        return [required(path)]
    errors = [too_long(path, 63)] if len(name.encode()) > 63 else []
    return errors + [invalid(path, name, text) for text in names.dns_subdomain(name.lower())]


def _partition(source: Any, path: str) -> list[FieldError]:
    return [] if 0 <= source.partition <= 255 else [invalid(f"{path}.partition", source.partition, _PARTITION)]


def _gce(source: storage.GCEPersistentDiskVolumeSource, path: str) -> list[FieldError]:
    return needed(source, path, "pd_name") + _partition(source, path)


def _aws(source: storage.AWSElasticBlockStoreVolumeSource, path: str) -> list[FieldError]:
    return needed(source, path, "volume_id") + _partition(source, path)


def _initiator(name: str, path: str, unknown: str) -> list[FieldError]:
    form = _INITIATORS.get(name[:3])
    if form is None:
        return [invalid(path, name, unknown)]
    return [] if form.search(name) else [invalid(path, name, "must be valid format")]


def _iscsi(source: storage.ISCSIVolumeSource | storage.ISCSIPersistentVolumeSource, path: str) -> list[FieldError]:
    in_pod = isinstance(source, storage.ISCSIVolumeSource)
    unknown = "must be valid format starting with iqn, eui, or naa" if in_pod else "must be valid format"
    errors = needed(source, path, "target_portal", "iqn")
    errors += _initiator(source.iqn, f"{path}.iqn", unknown) if source.iqn else []
    if not 0 <= source.lun <= 255:
        errors.append(invalid(f"{path}.lun", source.lun, _LUN))
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        errors.append(required(f"{path}.secretRef"))
    if not in_pod:
        errors += _secret(source.secret_ref, path, namespaced=False)
    if source.initiator_name:
        errors += _initiator(source.initiator_name, f"{path}.initiatorname", unknown)
    return errors


def _fc(source: storage.FCVolumeSource, path: str) -> list[FieldError]:
    errors = []
    if not source.target_wwns and not source.wwids:
        errors.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if source.target_wwns and source.wwids:
        text = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", list(source.target_wwns), text))
    if source.target_wwns and source.lun is None:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif source.target_wwns and source.lun is not None and not 0 <= source.lun <= 255:
        errors.append(invalid(f"{path}.lun", source.lun, _LUN))
    return errors


def _nfs(source: storage.NFSVolumeSource, path: str) -> list[FieldError]:
    errors = needed(source, path, "server", "path")
    if not source.path.startswith("/"):
        errors.append(invalid(f"{path}.path", source.path, "must be an absolute path"))
    return errors


def _quobyte(source: storage.QuobyteVolumeSource, path: str) -> list[FieldError]:
    errors = []
    if not source.registry:
        errors.append(required(f"{path}.registry", _REGISTRY))
    elif len(source.tenant.encode()) >= 65:
        errors.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        pairs = source.registry.split(",")
        errors += [invalid(f"{path}.registry", source.registry, _REGISTRY) for pair in pairs if pair.count(":") != 1]
    return errors + needed(source, path, "volume")


def _glusterfs(source: Any, path: str) -> list[FieldError]:
    errors = needed(source, path, "endpoints", "path")
    namespace = getattr(source, "endpoints_namespace", None)
    if namespace is None:
        return errors
    text = "if the endpointnamespace is set, it must be a valid namespace name"
    problems = names.dns_label(namespace) if namespace else [text]
    return errors + [invalid(f"{path}.endpointsNamespace", namespace, problem) for problem in problems]


def _flocker(source: storage.FlockerVolumeSource, path: str) -> list[FieldError]:
    errors = []
    if not source.dataset_name and not source.dataset_uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if source.dataset_name and source.dataset_uuid:
        errors.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in source.dataset_name:
        errors.append(invalid(f"{path}.datasetName", source.dataset_name, "must not contain '/'"))
    return errors


def _rbd(source: Any, path: str) -> list[FieldError]:
    return needed(source, path, "monitors", "image")


def _secret(ref: LocalObjectReference | SecretReference | None, path: str, *, namespaced: bool) -> list[FieldError]:
    if ref is None:
        return []
    return needed(ref, f"{path}.secretRef", *(("name", "namespace") if namespaced else ("name",)))


def _cinder(source: Any, path: str) -> list[FieldError]:
    namespaced = isinstance(source, storage.CinderPersistentVolumeSource)
    return needed(source, path, "volume_id") + _secret(source.secret_ref, path, namespaced=namespaced)


def _cephfs(source: Any, path: str) -> list[FieldError]:
    return needed(source, path, "monitors")


def _flex(source: Any, path: str) -> list[FieldError]:
    errors = needed(source, path, "driver")
    for key in sorted(source.options):
        domain = "." + key.partition("/")[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, text))
    return errors


def _azure_file(source: Any, path: str) -> list[FieldError]:
    errors = needed(source, path, "secret_name", "share_name")
    if getattr(source, "secret_namespace", None) == "":
        errors.append(required(f"{path}.secretNamespace"))
    return errors


def _azure_disk(source: storage.AzureDiskVolumeSource, path: str) -> list[FieldError]:
    errors = needed(source, path, "disk_name", "disk_uri")
    if source.caching_mode and source.caching_mode not in _CACHING:
        errors.append(unsupported(f"{path}.cachingMode", source.caching_mode, _CACHING))
    if source.kind and source.kind not in _DISK_KINDS:
        errors.append(unsupported(f"{path}.kind", source.kind, _DISK_KINDS))
    if source.kind == "Managed" and not source.disk_uri.startswith("/subscriptions/"):
        errors.append(unsupported(f"{path}.diskURI", source.disk_uri, (_MANAGED,)))
    if source.kind and source.kind != "Managed" and not source.disk_uri.startswith("https://"):
        errors.append(unsupported(f"{path}.diskURI", source.disk_uri, (_BLOB,)))
    return errors


def _vsphere(source: Any, path: str) -> list[FieldError]:
    return needed(source, path, "volume_path")


def _photon(source: Any, path: str) -> list[FieldError]:
    return needed(source, path, "pd_id")


def _portworx(source: Any, path: str) -> list[FieldError]:
    return needed(source, path, "volume_id")


def _scale_io(source: Any, path: str) -> list[FieldError]:
    return needed(source, path, "gateway", "system", "volume_name")


def _storageos(source: Any, path: str) -> list[FieldError]:
    errors = needed(source, path, "volume_name")
    for value, name in ((source.volume_name, "volumeName"), (source.volume_namespace, "volumeNamespace")):
        errors += [invalid(f"{path}.{name}", value, text) for text in (names.dns_label(value) if value else ())]
    ref = source.secret_ref
    if ref is None:
        return errors
    in_pod = isinstance(source, storage.StorageOSVolumeSource)
    return errors + needed(ref, f"{path}.secretRef", *(("name",) if in_pod else ("name", "namespace")))


def _csi(source: storage.CSIVolumeSource, path: str) -> list[FieldError]:
    errors = driver_name(source.driver, f"{path}.driver")
    ref = source.node_publish_secret_ref
    if ref is None:
        return errors
    if not ref.name:
        return [*errors, required(f"{path}.nodePublishSecretRef.name")]
    return errors + [invalid(f"{path}.name", ref.name, text) for text in names.dns_subdomain(ref.name)]


def _persistent_csi(source: storage.CSIPersistentVolumeSource, path: str) -> list[FieldError]:
    errors = driver_name(source.driver, f"{path}.driver") + needed(source, path, "volume_handle")
    for ref, name in (
        (source.controller_publish_secret_ref, "controllerPublishSecretRef"),
        (source.controller_expand_secret_ref, "controllerExpandSecretRef"),
        (source.node_publish_secret_ref, "nodePublishSecretRef"),
        (source.node_expand_secret_ref, "nodeExpandSecretRef"),
    ):
        if ref is not None:
            errors += _named(ref.name, names.dns_subdomain, f"{path}.{name}.name")
            errors += _named(ref.namespace, names.dns_label, f"{path}.{name}.namespace")
    return errors


def _named(value: str, check: names.Check, path: str) -> list[FieldError]:
    return [invalid(path, value, text) for text in check(value)] if value else [required(path)]


REMOTE: Mapping[type, Callable[[Any, str], list[FieldError]]] = {
    storage.AWSElasticBlockStoreVolumeSource: _aws,
    storage.AzureDiskVolumeSource: _azure_disk,
    storage.AzureFilePersistentVolumeSource: _azure_file,
    storage.AzureFileVolumeSource: _azure_file,
    storage.CephFSPersistentVolumeSource: _cephfs,
    storage.CephFSVolumeSource: _cephfs,
    storage.CinderPersistentVolumeSource: _cinder,
    storage.CinderVolumeSource: _cinder,
    storage.CSIPersistentVolumeSource: _persistent_csi,
    storage.CSIVolumeSource: _csi,
    storage.FCVolumeSource: _fc,
    storage.FlexPersistentVolumeSource: _flex,
    storage.FlexVolumeSource: _flex,
    storage.FlockerVolumeSource: _flocker,
    storage.GCEPersistentDiskVolumeSource: _gce,
    storage.GlusterfsPersistentVolumeSource: _glusterfs,
    storage.GlusterfsVolumeSource: _glusterfs,
    storage.ISCSIPersistentVolumeSource: _iscsi,
    storage.ISCSIVolumeSource: _iscsi,
    storage.NFSVolumeSource: _nfs,
    storage.PhotonPersistentDiskVolumeSource: _photon,
    storage.PortworxVolumeSource: _portworx,
    storage.QuobyteVolumeSource: _quobyte,
    storage.RBDPersistentVolumeSource: _rbd,
    storage.RBDVolumeSource: _rbd,
    storage.ScaleIOPersistentVolumeSource: _scale_io,
    storage.ScaleIOVolumeSource: _scale_io,
    storage.StorageOSPersistentVolumeSource: _storageos,
    storage.StorageOSVolumeSource: _storageos,
    storage.VsphereVirtualDiskVolumeSource: _vsphere,
}
