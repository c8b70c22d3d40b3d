"""Environment variables and where their values come from."""

import re

from podfit.api.core.containers import EnvFromSource, EnvVar, EnvVarSource
from podfit.api.core.references import ObjectFieldSelector, ResourceFieldSelector
from podfit.api.validation import names
from podfit.core.fields import FieldError, invalid, required, unsupported

ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.hostIP", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN_FIELDS = (
    *ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "spec.hostNetwork", "status.phase",
    "status.nominatedNodeName",
)  # fmt: skip
RESOURCE_FIELDS = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_SUBSCRIPT = re.compile(r"^(metadata\.(?:annotations|labels))\['(.*)'\]$")
_SOURCES = (
    ("field_ref", "fieldRef"), ("resource_field_ref", "resourceFieldRef"), ("config_map_key_ref", "configMapKeyRef"),
    ("secret_key_ref", "secretKeyRef"), ("file_key_ref", "fileKeyRef"),
)  # fmt: skip


def validate_env(variables: tuple[EnvVar, ...], path: str) -> list[FieldError]:
    errors = []
    for index, variable in enumerate(variables):
        where = f"{path}[{index}]"
        if not variable.name:
            errors.append(required(f"{where}.name"))
        else:
            errors += [invalid(f"{where}.name", variable.name, text) for text in names.env_name(variable.name)]
        if variable.value_from is not None:
            errors += _source(variable, variable.value_from, f"{where}.valueFrom")
    return errors


def _source(variable: EnvVar, source: EnvVarSource, path: str) -> list[FieldError]:
    errors = []
    if source.field_ref is not None:
        errors += field_selector(source.field_ref, ENV_FIELDS, f"{path}.fieldRef")
    if source.resource_field_ref is not None:
        errors += resource_selector(source.resource_field_ref, f"{path}.resourceFieldRef", in_volume=False)
    for attribute, name in (("config_map_key_ref", "configMapKeyRef"), ("secret_key_ref", "secretKeyRef")):
        ref = getattr(source, attribute)
        if ref is not None:
            errors += _key(ref.key, f"{path}.{name}.key")
    given = sum(getattr(source, attribute) is not None for attribute, _ in _SOURCES)
    if not given:
        listed = ", ".join(f"`{name}`" for _, name in _SOURCES[:-1])
        errors.append(invalid(path, "", f"must specify one of: {listed} or `{_SOURCES[-1][1]}`"))
    elif variable.value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif given > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _key(key: str, path: str) -> list[FieldError]:
    return [invalid(path, key, text) for text in names.config_key(key)] if key else [required(path)]


def field_selector(ref: ObjectFieldSelector, supported: tuple[str, ...], path: str) -> list[FieldError]:
    if not ref.api_version:
        return [required(f"{path}.apiVersion")]
    if not ref.field_path:
        return [required(f"{path}.fieldPath")]
    if subscript := _SUBSCRIPT.match(ref.field_path):
        problems = names.qualified(subscript[2].lower() if "annotations" in subscript[1] else subscript[2])
        return [invalid(path, subscript[2], text) for text in problems]
    if ref.field_path not in _KNOWN_FIELDS:
        text = f"error converting fieldPath: field label not supported: {ref.field_path}"
        return [invalid(f"{path}.fieldPath", ref.field_path, text)]
    if ref.field_path not in supported:
        return [unsupported(f"{path}.fieldPath", ref.field_path, supported)]
    return []


def resource_selector(ref: ResourceFieldSelector, path: str, *, in_volume: bool) -> list[FieldError]:
    """In a volume the container has to be named: no container's own environment says which is meant."""
    if in_volume and not ref.container_name:
        return [required(f"{path}.containerName")]
    if not ref.resource:
        return [required(f"{path}.resource")]
    pages = ref.resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    if ref.resource not in RESOURCE_FIELDS and not pages:
        return [unsupported(f"{path}.resource", ref.resource, RESOURCE_FIELDS)]
    return _divisor(ref, path)


_DIVISORS = {
    "cpu": ("1m", "1"),
    "memory": ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"),
}


def _divisor(ref: ResourceFieldSelector, path: str) -> list[FieldError]:
    name = ref.resource.partition(".")[2]
    allowed = _DIVISORS["cpu" if name == "cpu" else "memory"]
    if not ref.divisor or str(ref.divisor) in allowed:
        return []
    shown = "cpu" if name == "cpu" else name if name in ("memory", "ephemeral-storage") else "hugepages"
    text = f"only divisor's values {', '.join(allowed)} are supported with the {shown} resource"
    return [invalid(f"{path}.divisor", ref.divisor, text)]


def validate_env_from(sources: tuple[EnvFromSource, ...], path: str) -> list[FieldError]:
    errors = []
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        if source.prefix:
            errors += [invalid(f"{where}.prefix", source.prefix, text) for text in names.env_name(source.prefix)]
        for ref, name in ((source.config_map_ref, "configMapRef"), (source.secret_ref, "secretRef")):
            if ref is not None and not ref.name:
                errors.append(required(f"{where}.{name}.name"))
        given = (source.config_map_ref is not None) + (source.secret_ref is not None)
        if not given:
            errors.append(invalid(where, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif given > 1:
            errors.append(invalid(where, "", "may not have more than one field specified at a time"))
    return errors
