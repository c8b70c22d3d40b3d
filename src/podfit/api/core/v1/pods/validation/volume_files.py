"""Files that a volume is made of: where they may lie, and with which rights."""

from podfit.api.core.v1.pods.validation.env import VOLUME_FIELDS, field_selector, resource_selector
from podfit.api.core.v1.pods.volumes import DownwardAPIVolumeFile, KeyToPath
from podfit.core.fields import FieldError, invalid, required

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def mode(bits: int | None, path: str) -> list[FieldError]:
    return [] if bits is None or 0 <= bits <= 0o777 else [invalid(path, bits, _MODE)]


def no_parents(text: str, path: str) -> list[FieldError]:
    return [invalid(path, text, "must not contain '..'")] if ".." in text.split("/") else []


def local_path(text: str, path: str) -> list[FieldError]:
    errors = [invalid(path, text, "must be a relative path")] if text.startswith("/") else []
    return errors + no_parents(text, path)


def unreserved_path(text: str, path: str) -> list[FieldError]:
    """Relative, and not in the way of the links by which the kubelet swaps contents."""
    errors = local_path(text, path)
    if text.startswith("..") and not text.startswith("../"):
        errors.append(invalid(path, text, "must not start with '..'"))
    return errors


def key_to_path(item: KeyToPath, path: str) -> list[FieldError]:
    errors = [] if item.key else [required(f"{path}.key")]
    errors += unreserved_path(item.path, f"{path}.path") if item.path else [required(f"{path}.path")]
    return errors + mode(item.mode, f"{path}.mode")


def keys_to_paths(items: tuple[KeyToPath, ...], path: str) -> list[FieldError]:
    return [error for index, item in enumerate(items) for error in key_to_path(item, f"{path}[{index}]")]


def downward_file(item: DownwardAPIVolumeFile, path: str) -> list[FieldError]:
    """Paths name the source, not the item, as upstream's do."""
    errors = unreserved_path(item.path, f"{path}.path") if item.path else [required(f"{path}.path")]
    if item.field_ref is not None:
        errors += field_selector(item.field_ref, VOLUME_FIELDS, f"{path}.fieldRef")
        if item.resource_field_ref is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", text))
    elif item.resource_field_ref is not None:
        errors += resource_selector(item.resource_field_ref, f"{path}.resourceFieldRef", in_volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + mode(item.mode, f"{path}.mode")
