"""Volumes. Sources that no node of ours mounts are checked for what names them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import astuple

from podfit.api.base import Struct
from podfit.api.core.storage_sources import (
    CSIVolumeSource,
    HostPathVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
)
from podfit.api.core.volumes import (
    ConfigMapProjection,
    ConfigMapVolumeSource,
    DownwardAPIProjection,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    EphemeralVolumeSource,
    ImageVolumeSource,
    KeyToPath,
    PersistentVolumeClaimVolumeSource,
    ProjectedVolumeSource,
    SecretProjection,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from podfit.api.remembered import passed
from podfit.api.validation import names
from podfit.api.validation.env import VOLUME_FIELDS, field_selector, resource_selector
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from podfit.core.quantity import ZERO

_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


@cache
def _members(kind: type[Struct]) -> tuple[tuple[str, str], ...]:
    """Each member's attribute and its name in JSON: found by evaluating annotations, which takes half a millisecond."""
    return tuple((field.name, field.encode_name) for field in msgspec.structs.fields(kind))


def validate_volumes(volumes: tuple[Volume, ...], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        errors += _source(volume, where)
        if not volume.name:
            errors.append(required(f"{where}.name"))
        else:
            errors += [invalid(f"{where}.name", volume.name, text) for text in names.dns_label(volume.name)]
        if volume.name in seen:
            errors.append(duplicate(f"{where}.name", volume.name))
        seen.add(volume.name)
    return errors


def _source(volume: Volume, path: str) -> list[FieldError]:
    """Exactly one; a second one is refused, and not looked into."""
    errors: list[FieldError] = []
    given = 0
    for (attribute, name), source in zip(_members(Volume), astuple(volume), strict=True):
        if source is None or attribute == "name":
            continue
        given += 1
        where = f"{path}.{name}"
        if given > 1:
            errors.append(forbidden(where, "may not specify more than 1 volume type"))
        else:
            errors += check_source(source, where)
    return errors if given else [required(path, "must specify a volume type")]


def check_source(source: Any, path: str) -> list[FieldError]:
    check = _CHECKS.get(type(source))
    return check(source, path) if check else []


def _mode(mode: int | None, path: str) -> list[FieldError]:
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(path, mode, _MODE)]


def local_path(text: str, path: str) -> list[FieldError]:
    errors = [invalid(path, text, "must be a relative path")] if text.startswith("/") else []
    return errors + no_parents(text, path)


def no_parents(text: str, path: str) -> list[FieldError]:
    return [invalid(path, text, "must not contain '..'")] if ".." in text.split("/") else []


def _volume_path(text: str, path: str) -> list[FieldError]:
    """Relative, and not in the way of the links by which the kubelet swaps contents."""
    errors = local_path(text, path)
    if text.startswith("..") and not text.startswith("../") and text != "..":
        errors.append(invalid(path, text, "must not start with '..'"))
    return errors


def _items(items: tuple[KeyToPath, ...], path: str) -> list[FieldError]:
    errors = []
    for index, item in enumerate(items):
        where = f"{path}[{index}]"
        if not item.key:
            errors.append(required(f"{where}.key"))
        errors += _volume_path(item.path, f"{where}.path") if item.path else [required(f"{where}.path")]
        errors += _mode(item.mode, f"{where}.mode")
    return errors


def _config_map(source: ConfigMapVolumeSource, path: str) -> list[FieldError]:
    errors = [] if source.name else [required(f"{path}.name")]
    return errors + _mode(source.default_mode, f"{path}.defaultMode") + _items(source.items, f"{path}.items")


def _secret(source: SecretVolumeSource, path: str) -> list[FieldError]:
    errors = [] if source.secret_name else [required(f"{path}.secretName")]
    return errors + _mode(source.default_mode, f"{path}.defaultMode") + _items(source.items, f"{path}.items")


def _empty_dir(source: EmptyDirVolumeSource, path: str) -> list[FieldError]:
    if source.size_limit is not None and source.size_limit < ZERO:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: HostPathVolumeSource, path: str) -> list[FieldError]:
    if not source.path:
        return [required(f"{path}.path")]
    errors = no_parents(source.path, f"{path}.path")
    if (source.type or "") not in _HOST_PATH_TYPES:
        errors.append(unsupported(f"{path}.type", source.type, _HOST_PATH_TYPES))
    return errors


def _downward(source: DownwardAPIVolumeSource, path: str) -> list[FieldError]:
    errors = _mode(source.default_mode, f"{path}.defaultMode")
    for item in source.items:
        errors += _downward_file(item, path)
    return errors


def _downward_file(item: DownwardAPIVolumeFile, path: str) -> list[FieldError]:
    """Paths name the source, not the item, as upstream's do."""
    errors = _volume_path(item.path, f"{path}.path") if item.path else [required(f"{path}.path")]
    if item.field_ref is not None:
        errors += field_selector(item.field_ref, VOLUME_FIELDS, f"{path}.fieldRef")
        if item.resource_field_ref is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", text))
    elif item.resource_field_ref is not None:
        errors += resource_selector(item.resource_field_ref, f"{path}.resourceFieldRef", in_volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + _mode(item.mode, f"{path}.mode")


@passed
def _projected(source: ProjectedVolumeSource, path: str) -> list[FieldError]:
    errors = _mode(source.default_mode, f"{path}.defaultMode")
    for index, projection in enumerate(source.sources):
        errors += _projection(projection, f"{path}.sources[{index}]")
    return errors


def _projection(projection: VolumeProjection, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    given = 0
    for attribute, name in _members(VolumeProjection):
        source = getattr(projection, attribute)
        if source is None:
            continue
        given += 1
        where = f"{path}.{name}"
        if given > 1:
            errors.append(forbidden(where, "may not specify more than 1 volume type"))
        elif isinstance(source, ServiceAccountTokenProjection):
            errors += _token(source, where)
        elif isinstance(source, DownwardAPIProjection):
            errors += [error for item in source.items for error in _downward_file(item, where)]
        elif isinstance(source, (ConfigMapProjection, SecretProjection)):
            errors += [] if source.name else [required(f"{where}.name")]
            errors += _items(source.items, f"{where}.items")
    return errors


def _token(source: ServiceAccountTokenProjection, path: str) -> list[FieldError]:
    errors = []
    seconds = source.expiration_seconds
    if seconds is not None and seconds < 600:
        errors.append(invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if seconds is not None and seconds > 2**32:
        text = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{path}.expirationSeconds", seconds, text))
    return errors + (_volume_path(source.path, f"{path}.path") if source.path else [required(f"{path}.path")])


def _nfs(source: NFSVolumeSource, path: str) -> list[FieldError]:
    errors = _needed(source, path, "server", "path")
    if not source.path.startswith("/"):
        errors.append(invalid(f"{path}.path", source.path, "must be an absolute path"))
    return errors


def _claim(source: PersistentVolumeClaimVolumeSource, path: str) -> list[FieldError]:
    return [] if source.claim_name else [required(f"{path}.claimName")]


def _csi(source: CSIVolumeSource, path: str) -> list[FieldError]:
    return _needed(source, path, "driver")


def _image(source: ImageVolumeSource, path: str) -> list[FieldError]:
    errors = _needed(source, path, "reference")
    policies = ("Always", "IfNotPresent", "Never")
    if source.pull_policy not in policies:
        errors.append(unsupported(f"{path}.pullPolicy", source.pull_policy, policies))
    return errors


def _ephemeral(source: EphemeralVolumeSource, path: str) -> list[FieldError]:
    return [] if source.volume_claim_template else [required(f"{path}.volumeClaimTemplate")]


def _iscsi(source: ISCSIVolumeSource, path: str) -> list[FieldError]:
    errors = [] if source.target_portal else [required(f"{path}.targetPortal")]
    return errors + _needed(source, path, "iqn")


def _needed(source: Any, path: str, *attributes: str) -> list[FieldError]:
    return [required(f"{path}.{attribute}") for attribute in attributes if not getattr(source, attribute)]


_CHECKS: dict[type, Callable[[Any, str], list[FieldError]]] = {
    ConfigMapVolumeSource: _config_map,
    CSIVolumeSource: _csi,
    DownwardAPIVolumeSource: _downward,
    EmptyDirVolumeSource: _empty_dir,
    EphemeralVolumeSource: _ephemeral,
    HostPathVolumeSource: _host_path,
    ImageVolumeSource: _image,
    ISCSIVolumeSource: _iscsi,
    NFSVolumeSource: _nfs,
    PersistentVolumeClaimVolumeSource: _claim,
    ProjectedVolumeSource: _projected,
    SecretVolumeSource: _secret,
}
