"""Claims to storage: on their own, and as templates inside of pods and stateful sets."""

from collections.abc import Iterator, Sequence

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate
from podfit.api.core.v1.references import TypedLocalObjectReference, TypedObjectReference
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import validate_annotations, validate_labels, validate_selector
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported
from podfit.core.quantity import ZERO

POSITIVE = "must be greater than zero"
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE = "ReadWriteOncePod"
_VOLUME_MODES = ("Block", "Filesystem")
_NOT_IN_TEMPLATE = (
    ("name", "name"),
    ("generate_name", "generateName"),
    ("namespace", "namespace"),
    ("self_link", "selfLink"),
    ("uid", "uID"),
    ("resource_version", "resourceVersion"),
    ("generation", "generation"),
    ("creation_timestamp", "creationTimestamp"),
    ("deletion_timestamp", "deletionTimestamp"),
    ("deletion_grace_period_seconds", "deletionGracePeriodSeconds"),
    ("owner_references", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managed_fields", "managedFields"),
)


def claim_template(template: PersistentVolumeClaimTemplate, path: str) -> list[FieldError]:
    """Its metadata is labels and annotations; the rest is made with the claim."""
    meta, where = template.metadata, f"{path}.metadata"
    errors = validate_annotations(meta.annotations, f"{where}.annotations")
    errors += validate_labels(meta.labels, f"{where}.labels")
    nothing = ObjectMeta()
    for attribute, name in _NOT_IN_TEMPLATE:
        if getattr(meta, attribute) != getattr(nothing, attribute):
            errors.append(forbidden(f"{where}.{name}", "cannot be set"))
    return errors + claim_spec(template.spec, f"{path}.spec")


def claim_spec(spec: PersistentVolumeClaimSpec, path: str) -> list[FieldError]:
    errors = []
    if not spec.access_modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += validate_selector(spec.selector, f"{path}.selector") + access_modes(spec.access_modes, path)
    size, where = spec.resources.requests.get("storage"), f"{path}.resources[storage]"
    if size is None:
        errors.append(required(where))
    elif size <= ZERO:
        errors.append(invalid(where, size, POSITIVE))
    errors += class_name(spec.storage_class_name, f"{path}.storageClassName") + volume_mode(spec.volume_mode, path)
    errors += _sources(spec, path)
    return errors + class_name(spec.volume_attributes_class_name, f"{path}.volumeAttributesClassName")


def access_modes(modes: Sequence[str], path: str) -> list[FieldError]:
    errors = [unsupported(f"{path}.accessModes", mode, _MODES) for mode in modes if mode not in _MODES]
    if _ALONE in modes and set(modes) & set(_MODES) - {_ALONE}:
        errors.append(forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes"))
    return errors


def class_name(name: str | None, path: str) -> list[FieldError]:
    return [invalid(path, name, text) for text in names.dns_subdomain(name)] if name else []


def volume_mode(mode: str | None, path: str) -> list[FieldError]:
    if mode is None or mode in _VOLUME_MODES:
        return []
    return [unsupported(f"{path}.volumeMode", mode, _VOLUME_MODES)]


def _sources(spec: PersistentVolumeClaimSpec, path: str) -> list[FieldError]:
    """What the claim is filled from. The two forms say the same, but that a namespace goes with the newer only."""
    source, ref = spec.data_source, spec.data_source_ref
    errors = _source(source, f"{path}.dataSource") if source else []
    errors += _source(ref, f"{path}.dataSourceRef") if ref else []
    if ref is None:
        return errors
    if ref.namespace:
        errors += [invalid(f"{path}.dataSourceRef.namespace", ref.namespace, t) for t in names.dns_label(ref.namespace)]
    if source is None:
        return errors
    if ref.namespace:
        text = "may not be specified when dataSourceRef.namespace is specified"
        errors.append(invalid(path, {}, text))
    elif (source.api_group, source.kind, source.name) != (ref.api_group, ref.kind, ref.name):
        errors.append(invalid(path, {}, "must match dataSourceRef"))
    return errors


def _source(source: TypedLocalObjectReference | TypedObjectReference, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("name", "kind") if not getattr(source, name)]
    if not source.api_group and source.kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, source.kind, text))
    return errors + class_name(source.api_group, f"{path}.apiGroup")


def claim_warnings(spec: PersistentVolumeClaimSpec, path: str) -> Iterator[str]:
    """What a client is warned of."""
    for side, amounts in (("requests", spec.resources.requests), ("limits", spec.resources.limits)):
        size = amounts.get("storage")
        if size is not None and not size.is_integer():
            text = f'fractional byte value "{size}" is invalid, must be an integer'
            yield f"{path}.resources.{side}[storage]: {text}"
