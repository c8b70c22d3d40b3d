"""Persistent volumes, claims, storage classes and runtime classes."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.base import Object, ResourceList
from podfit.api.core.claims import PersistentVolumeClaim, PersistentVolumeClaimSpec
from podfit.api.core.persistent import LocalVolumeSource, PersistentVolume, PersistentVolumeSpec
from podfit.api.core.storage_sources import CSIPersistentVolumeSource
from podfit.api.node import RuntimeClass
from podfit.api.storage import CSIDriver, StorageClass
from podfit.api.validation import names
from podfit.api.validation.meta import immutable, validate_labels, validate_selector
from podfit.api.validation.resources import amount
from podfit.api.validation.rules import Rules
from podfit.api.validation.scheduling import validate_node_selector, validate_tolerations
from podfit.api.validation.volumes import check_source
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported
from podfit.core.quantity import ZERO

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE = "ReadWriteOncePod"
_VOLUME_MODES = ("Block", "Filesystem")
_RECLAIM = ("Delete", "Recycle", "Retain")
_POSITIVE = "must be greater than zero"
_SOURCES = [
    each for each in msgspec.structs.fields(PersistentVolumeSpec)
    if each.name not in (
        "access_modes", "capacity", "claim_ref", "mount_options", "node_affinity", "persistent_volume_reclaim_policy",
        "storage_class_name", "volume_attributes_class_name", "volume_mode",
    )
]  # fmt: skip
_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def validate_claim(claim: PersistentVolumeClaim) -> list[FieldError]:
    return claim_spec(claim.spec, "spec")


def claim_spec(spec: PersistentVolumeClaimSpec, path: str) -> list[FieldError]:
    errors = []
    if not spec.access_modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += validate_selector(spec.selector, f"{path}.selector") + _modes(spec.access_modes, path)
    size, where = spec.resources.requests.get("storage"), f"{path}.resources[storage]"
    if size is None:
        errors.append(required(where))
    elif size <= ZERO:
        errors.append(invalid(where, size, _POSITIVE))
    return errors + _class_name(spec.storage_class_name, path) + _volume_mode(spec.volume_mode, path)


def _modes(modes: Sequence[str], path: str) -> list[FieldError]:
    errors = [unsupported(f"{path}.accessModes", each, _MODES) for each in modes if each not in _MODES]
    if _ALONE in modes and set(modes) & set(_MODES) - {_ALONE}:
        errors.append(forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes"))
    return errors


def _class_name(name: str | None, path: str) -> list[FieldError]:
    if not name:
        return []
    return [invalid(f"{path}.storageClassName", name, text) for text in names.dns_subdomain(name)]


def _volume_mode(mode: str | None, path: str) -> list[FieldError]:
    if mode is None or mode in _VOLUME_MODES:
        return []
    return [unsupported(f"{path}.volumeMode", mode, _VOLUME_MODES)]


def validate_claim_update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    """Once made a claim stays as it is, but for growing when it is bound."""
    errors = validate_claim(new)
    after, before = new.spec, old.spec
    if not before.volume_name:
        before = replace(before, volume_name=after.volume_name)
    if before.storage_class_name is None:
        before = replace(before, storage_class_name=after.storage_class_name)
    if new.status.phase == "Bound":
        resources = replace(before.resources, requests=_grown(before.resources.requests, after.resources.requests))
        before = replace(before, resources=resources, volume_attributes_class_name=after.volume_attributes_class_name)
    if after != before:
        errors.append(forbidden("spec", _FIXED))
    size, former = after.resources.requests.get("storage"), old.spec.resources.requests.get("storage")
    if new.status.phase == "Bound" and size is not None and former is not None and size < former:
        given = old.status.capacity.get("storage")
        if given is None or size <= given:
            text = "field can not be less than status.capacity"
            errors.append(forbidden("spec.resources.requests.storage", text))
    return errors + immutable(new.spec.volume_mode, old.spec.volume_mode, "spec.volumeMode")


def _grown(old: ResourceList, new: ResourceList) -> ResourceList:
    return {**old, **({"storage": new["storage"]} if "storage" in new else {})}


def validate_volume(volume: PersistentVolume) -> list[FieldError]:
    spec = volume.spec
    errors = [] if spec.access_modes else [required("spec.accessModes")]
    errors += _modes(spec.access_modes, "spec") + _capacity(spec.capacity)
    policy = spec.persistent_volume_reclaim_policy
    if policy and policy not in _RECLAIM:
        errors.append(unsupported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM))
    if spec.node_affinity is not None:
        errors += _node_affinity(spec)
    errors += _source(spec)
    if policy == "Recycle" and spec.host_path is not None and spec.host_path.path == "/":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden("spec.persistentVolumeReclaimPolicy", text))
    return errors + _class_name(spec.storage_class_name, "spec") + _volume_mode(spec.volume_mode, "spec")


def _capacity(capacity: ResourceList) -> list[FieldError]:
    errors = [] if capacity else [required("spec.capacity")]
    if capacity.keys() != {"storage"}:
        errors.append(unsupported("spec.capacity", capacity or None, ("storage",)))
    for name, size in sorted(capacity.items()):
        path = f"spec.capacity[{name}]"
        errors += amount(name, size, path) or ([] if size > ZERO else [invalid(path, size, _POSITIVE)])
    return errors


def _node_affinity(spec: PersistentVolumeSpec) -> list[FieldError]:
    assert spec.node_affinity is not None
    wanted, path = spec.node_affinity.required, "spec.nodeAffinity.required"
    if wanted is None:
        return [required(path, "must specify required node constraints")]
    return validate_node_selector(wanted, path)


def _source(spec: PersistentVolumeSpec) -> list[FieldError]:
    """Exactly one; a second one is refused, and not looked into."""
    errors: list[FieldError] = []
    given = [(each.encode_name, getattr(spec, each.name)) for each in _SOURCES]
    found = [(name, source) for name, source in given if source is not None]
    for index, (name, source) in enumerate(found):
        path = f"spec.{name}"
        if index:
            errors.append(forbidden(path, "may not specify more than 1 volume type"))
            continue
        check = _CHECKS.get(type(source))
        errors += check(source, path) if check else check_source(source, path)
        if isinstance(source, LocalVolumeSource) and spec.node_affinity is None:
            errors.append(required("metadata.annotations", "Local volume requires node affinity"))
    return errors if found else [required("spec", "must specify a volume type")]


def _csi(source: CSIPersistentVolumeSource, path: str) -> list[FieldError]:
    errors = [] if source.driver else [required(f"{path}.driver")]
    if source.driver:
        errors += [invalid(f"{path}.driver", source.driver, text) for text in names.dns_subdomain(source.driver)]
    return errors if source.volume_handle else [*errors, required(f"{path}.volumeHandle")]


def _local(source: LocalVolumeSource, path: str) -> list[FieldError]:
    if not source.path:
        return [required(f"{path}.path")]
    return [] if ".." not in source.path.split("/") else [invalid(f"{path}.path", source.path, "must not contain '..'")]


_CHECKS: dict[type, Callable[[Any, str], list[FieldError]]] = {
    CSIPersistentVolumeSource: _csi, LocalVolumeSource: _local,
}  # fmt: skip


def validate_volume_update(new: PersistentVolume, old: PersistentVolume) -> list[FieldError]:
    errors = validate_volume(new)
    if any(getattr(new.spec, each.name) != getattr(old.spec, each.name) for each in _SOURCES):
        text = "spec.persistentvolumesource is immutable after creation"
        errors.append(forbidden("spec.persistentvolumesource", text))
    errors += immutable(new.spec.volume_mode, old.spec.volume_mode, "spec.volumeMode")
    if old.spec.node_affinity is not None:
        errors += immutable(new.spec.node_affinity, old.spec.node_affinity, "spec.nodeAffinity")
    return errors


def validate_class(storage: StorageClass) -> list[FieldError]:
    name = storage.provisioner
    errors = [] if name else [required("provisioner")]
    if name:
        errors += [invalid("provisioner", name, text) for text in names.qualified(name.lower())]
    if "" in storage.parameters:
        errors.append(invalid("parameters", "", "field can not be empty."))
    if storage.reclaim_policy not in ("Delete", "Retain"):
        errors.append(unsupported("reclaimPolicy", storage.reclaim_policy, ("Delete", "Retain")))
    modes = ("Immediate", "WaitForFirstConsumer")
    if storage.volume_binding_mode not in modes:
        errors.append(unsupported("volumeBindingMode", storage.volume_binding_mode, modes))
    return errors


def validate_class_update(new: StorageClass, old: StorageClass) -> list[FieldError]:
    errors = [
        forbidden(name, f"updates to {name} are forbidden.")
        for name, after, before in (
            ("parameters", new.parameters, old.parameters), ("provisioner", new.provisioner, old.provisioner),
            ("reclaimPolicy", new.reclaim_policy, old.reclaim_policy),
        )
        if after != before
    ]  # fmt: skip
    return errors + immutable(new.volume_binding_mode, old.volume_binding_mode, "volumeBindingMode")


def validate_runtime_class(runtime: RuntimeClass) -> list[FieldError]:
    errors = [invalid("handler", runtime.handler, text) for text in names.dns_label(runtime.handler)]
    for name, size in sorted(runtime.overhead.pod_fixed.items()) if runtime.overhead else ():
        errors += amount(name, size, f"overhead.podFixed[{name}]")
    if runtime.scheduling is not None:
        errors += validate_labels(runtime.scheduling.node_selector, "scheduling.nodeSelector")
        errors += validate_tolerations(runtime.scheduling.tolerations, "scheduling.tolerations")
    return errors


def validate_runtime_class_update(new: RuntimeClass, old: RuntimeClass) -> list[FieldError]:
    return validate_runtime_class(new) + immutable(new.handler, old.handler, "handler")


RULES: dict[type[Object], Rules] = {
    PersistentVolumeClaim: Rules(create=validate_claim, update=validate_claim_update),
    PersistentVolume: Rules(create=validate_volume, update=validate_volume_update),
    StorageClass: Rules(create=validate_class, update=validate_class_update),
    CSIDriver: Rules(),
    RuntimeClass: Rules(create=validate_runtime_class, update=validate_runtime_class_update),
}
