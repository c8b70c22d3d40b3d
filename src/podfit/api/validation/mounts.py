"""Where a container mounts the pod's volumes."""

from collections.abc import Collection

from podfit.api.core.containers import VolumeDevice, VolumeMount
from podfit.api.validation.volumes import local_path
from podfit.core.fields import FieldError, invalid, missing, required, unsupported

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")


def validate_mounts(
    mounts: tuple[VolumeMount, ...], volumes: Collection[str], devices: Collection[str], path: str
) -> list[FieldError]:
    """`devices` are the paths that the container's volume devices take."""
    errors = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
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
        if mount.mount_path in devices:
            errors.append(invalid(f"{where}.mountPath", mount.mount_path, "must not already exist in volumeDevices"))
        if mount.sub_path:
            errors += local_path(mount.sub_path, f"{path}.subPath")
        if mount.sub_path_expr:
            if mount.sub_path:
                text = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid(f"{where}.subPathExpr", mount.sub_path_expr, text))
            errors += local_path(mount.sub_path_expr, f"{path}.subPathExpr")
        if mount.mount_propagation is not None and mount.mount_propagation not in _PROPAGATIONS:
            errors.append(unsupported(f"{where}.mountPropagation", mount.mount_propagation, _PROPAGATIONS))
    return errors


def validate_devices(devices: tuple[VolumeDevice, ...], volumes: Collection[str], path: str) -> list[FieldError]:
    errors = []
    for index, device in enumerate(devices):
        where = f"{path}[{index}]"
        errors += [required(f"{where}.name")] if not device.name else []
        errors += [required(f"{where}.devicePath")] if not device.device_path else []
        if device.name and device.name not in volumes:
            errors.append(missing(f"{where}.name", device.name))
    return errors
