"""Validation of volume mounts and volume devices."""

from collections.abc import Mapping

from podfit.api.core.v1.pods.containers import Container, EphemeralContainer, VolumeDevice, VolumeMount
from podfit.api.core.v1.pods.validation.volume_files import local_path, no_parents
from podfit.api.core.v1.pods.volumes import Volume
from podfit.core.fields import FieldError, forbidden, invalid, missing, required, unsupported

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def validate_mounts(  # noqa: C901  (upstream's list of rules)
    container: Container | EphemeralContainer, volumes: Mapping[str, Volume], path: str
) -> list[FieldError]:
    """`volumes` are those that are in order."""
    errors: list[FieldError] = []
    devices = {device.name: device.device_path for device in container.volume_devices}
    device_paths = set(devices.values())
    seen: set[str] = set()
    for index, mount in enumerate(container.volume_mounts):
        where = f"{path}[{index}]"
        if not mount.name:
            errors.append(required(f"{where}.name"))
        if mount.name not in volumes:
            errors.append(missing(f"{where}.name", mount.name))
        if not mount.mount_path:
            errors.append(required(f"{where}.mountPath"))
        if mount.mount_path in seen:
            errors.append(invalid(f"{where}.mountPath", mount.mount_path, "must be unique"))
        seen.add(mount.mount_path)
        if mount.name in devices:
            errors.append(invalid(f"{where}.name", mount.name, "must not already exist in volumeDevices"))
        if mount.mount_path in device_paths:
            text = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{where}.mountPath", mount.mount_path, text))
        if mount.sub_path or mount.sub_path_expr:
            errors += _sub_paths(mount, where, path)
        if mount.mount_propagation is not None:
            errors += _propagation(mount, container, f"{path}.mountPropagation")
        if mount.recursive_read_only is not None:
            errors += _recursive(mount, f"{path}.recursiveReadOnly")
    return errors


def _sub_paths(mount: VolumeMount, where: str, path: str) -> list[FieldError]:
    errors = local_path(mount.sub_path, f"{path}.subPath")
    if mount.sub_path_expr and mount.sub_path:
        text = "subPathExpr and subPath are mutually exclusive"
        errors.append(invalid(f"{where}.subPathExpr", mount.sub_path_expr, text))
    return errors + local_path(mount.sub_path_expr, f"{path}.subPathExpr")


def _propagation(mount: VolumeMount, container: Container | EphemeralContainer, path: str) -> list[FieldError]:
    """Only a privileged container may hand mounts on to the host."""
    given, context = mount.mount_propagation, container.security_context
    if given is None:
        return []
    errors = [] if given in _PROPAGATIONS else [unsupported(path, given, _PROPAGATIONS)]
    if given == "Bidirectional" and not (context is not None and context.privileged):
        text = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden(path, text))
    return errors


def _recursive(mount: VolumeMount, path: str) -> list[FieldError]:
    given = mount.recursive_read_only
    if given is None or given == "Disabled":
        return []
    if given not in _RECURSIVE:
        return [unsupported(path, given, _RECURSIVE)]
    errors = [] if mount.read_only else [forbidden(path, "may only be specified when readOnly is true")]
    if mount.mount_propagation not in (None, "None"):
        errors.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return errors


def validate_devices(
    container: Container | EphemeralContainer, volumes: Mapping[str, Volume], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    mounts = {mount.name: mount.mount_path for mount in container.volume_mounts}
    mount_paths = set(mounts.values())
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for index, device in enumerate(container.volume_devices):
        name_at, path_at = f"{path}[{index}].name", f"{path}[{index}].devicePath"
        errors += _device_name(device, volumes, name_at, repeated=device.name in seen_names)
        if not device.device_path:
            errors.append(required(path_at))
        if device.device_path in seen_paths:
            errors.append(invalid(path_at, device.device_path, "must be unique"))
        if no_parents(device.device_path, path_at):
            errors.append(invalid(path_at, device.device_path, "can not contain backsteps ('..')"))
        else:
            seen_paths.add(device.device_path)
        if device.name in mounts:
            errors.append(invalid(name_at, device.name, "must not already exist in volumeMounts"))
        if device.device_path in mount_paths:
            errors.append(invalid(path_at, device.device_path, "must not already exist as a path in volumeMounts"))
        if device.name:
            seen_names.add(device.name)
    return errors


def _device_name(device: VolumeDevice, volumes: Mapping[str, Volume], path: str, *, repeated: bool) -> list[FieldError]:
    errors = [] if device.name else [required(path)]
    if repeated:
        errors.append(invalid(path, device.name, "must be unique"))
    volume = volumes.get(device.name)
    if volume is None:
        errors.append(missing(path, device.name))
    elif volume.persistent_volume_claim is None and volume.ephemeral is None:
        text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        errors.append(invalid(path, device.name, text))
    return errors
