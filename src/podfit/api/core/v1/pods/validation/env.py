"""Environment variables and where their values come from."""

import re

from podfit.api.core.v1.pods.containers import EnvFromSource, EnvVar, EnvVarSource
from podfit.api.core.v1.references import FileKeySelector, ObjectFieldSelector, ResourceFieldSelector
from podfit.api.meta.validation import names
from podfit.core.fields import FieldError, invalid, required, unsupported

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN_FIELDS = (*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase")
_OLD_NAMES = {"spec.host": "spec.nodeName"}
RESOURCE_FIELDS = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_SUBSCRIPT = re.compile(r"^([^\[]*)\['(.*)'\]\Z", re.DOTALL)
_SOURCES = (
    ("field_ref", "fieldRef"),
    ("resource_field_ref", "resourceFieldRef"),
    ("config_map_key_ref", "configMapKeyRef"),
    ("secret_key_ref", "secretKeyRef"),
    ("file_key_ref", "fileKeyRef"),
)


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
    for ref, name in ((source.config_map_key_ref, "configMapKeyRef"), (source.secret_key_ref, "secretKeyRef")):
        if ref is not None:
            errors += [invalid(f"{path}.{name}.name", ref.name, text) for text in names.dns_subdomain(ref.name)]
            errors += _key(ref.key, f"{path}.{name}.key")
    if source.file_key_ref is not None:
        errors += _file_key(source.file_key_ref, f"{path}.fileKeyRef")
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


def _file_key(ref: FileKeySelector, path: str) -> list[FieldError]:
    errors = []
    for value, check, name in (
        (ref.key, names.env_name, "key"),
        (ref.volume_name, names.dns_label, "volumeName"),
        (ref.path, _parents, "path"),
    ):
        where = f"{path}.{name}"
        errors += [invalid(where, value, text) for text in check(value)] if value else [required(where)]
    return errors


def _parents(path: str) -> list[str]:
    return ["must not contain '..'"] if ".." in path.split("/") else []


def field_selector(ref: ObjectFieldSelector, supported: tuple[str, ...], path: str) -> list[FieldError]:
    """A field of the pod; labels and annotations also one by one, in brackets."""
    if not ref.api_version:
        return [required(f"{path}.apiVersion")]
    if not ref.field_path:
        return [required(f"{path}.fieldPath")]
    subscript = _SUBSCRIPT.match(ref.field_path)
    if problem := _conversion(ref, subscript):
        return [invalid(f"{path}.fieldPath", ref.field_path, f"error converting fieldPath: {problem}")]
    if subscript:
        key = subscript[2].lower() if subscript[1] == "metadata.annotations" else subscript[2]
        return [invalid(path, key, text) for text in names.qualified(key)]
    field = _OLD_NAMES.get(ref.field_path, ref.field_path)
    return [] if field in supported else [unsupported(f"{path}.fieldPath", field, supported)]


def _conversion(ref: ObjectFieldSelector, subscript: re.Match[str] | None) -> str:
    """Why it is no field of a pod at all."""
    if ref.api_version != "v1":
        return f"unsupported pod version: {ref.api_version}"
    if subscript:
        allowed = subscript[1] in ("metadata.annotations", "metadata.labels")
        return "" if allowed else f"field label does not support subscript: {ref.field_path}"
    known = ref.field_path in _KNOWN_FIELDS or ref.field_path in _OLD_NAMES
    return "" if known else f"field label not supported: {ref.field_path}"


def resource_selector(ref: ResourceFieldSelector, path: str, *, in_volume: bool) -> list[FieldError]:
    """In a volume the container has to be named: no container's own environment says which is meant."""
    errors = []
    pages = ref.resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    if in_volume and not ref.container_name:
        errors.append(required(f"{path}.containerName"))
    elif not ref.resource:
        errors.append(required(f"{path}.resource"))
    elif ref.resource not in RESOURCE_FIELDS and not pages:
        errors.append(unsupported(f"{path}.resource", ref.resource, RESOURCE_FIELDS))
    return errors + _divisor(ref, path)


_OF_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def _divisor(ref: ResourceFieldSelector, path: str) -> list[FieldError]:
    """A unit of the resource; upstream names the resource as the bad value."""
    if not ref.divisor:
        return []
    side, _, name = ref.resource.partition(".")
    if side not in ("limits", "requests"):
        return []
    allowed: tuple[str, ...] = ("1m", "1")
    listed, spoken = "1m and 1", "cpu"
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        allowed, listed = _OF_BYTES, ", ".join(_OF_BYTES)
        spoken = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(name, "hugepages")
    elif name != "cpu":
        return []
    if str(ref.divisor) in allowed:
        return []
    text = f"only divisor's values {listed} are supported with the {spoken} resource"
    return [invalid(f"{path}.divisor", ref.resource, text)]


def validate_env_from(sources: tuple[EnvFromSource, ...], path: str) -> list[FieldError]:
    """Errors about how many sources there are name the list, as upstream's do."""
    errors = []
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        if source.prefix:
            errors += [invalid(f"{where}.prefix", source.prefix, text) for text in names.env_name(source.prefix)]
        for ref, name in ((source.config_map_ref, "configMapRef"), (source.secret_ref, "secretRef")):
            if ref is not None and not ref.name:
                errors.append(required(f"{where}.{name}.name"))
            elif ref is not None:
                problems = names.dns_subdomain(names.generated(ref.name))
                errors += [invalid(f"{where}.{name}.name", ref.name, text) for text in problems]
        given = (source.config_map_ref is not None) + (source.secret_ref is not None)
        if not given:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif given > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors
