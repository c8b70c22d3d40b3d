"""Validation of CustomResourceDefinitions: names, versions, columns, subresources. `schema_validation` checks schemas.

Where all versions say the same about something, errors name the place that it had before versions could differ
(`spec.validation`, `spec.subresources`): an upstream quirk that clients see.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podfit.api.apiextensions.v1.approval import APPROVAL, approval, is_protected
from podfit.api.apiextensions.v1.schema_validation import schema_errors
from podfit.api.apiextensions.v1.types import (
    CustomResourceColumnDefinition,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
    CustomResourceDefinitionVersion,
    CustomResourceSubresourceScale,
    JSONSchemaProps,
    storage_version,
)
from podfit.api.meta import codec
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.rules import Rules
from podfit.api.structural.jsonpath import PathError, parse
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from podfit.core.loop_slices import spend

_APPROVED = f'protected groups must have approval annotation "{APPROVAL}"'
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def validate_definition(definition: CustomResourceDefinition) -> list[FieldError]:
    """All but the metadata."""
    return _validate(definition, {})


def _validate(definition: CustomResourceDefinition, before: Mapping[str, JSONSchemaProps]) -> list[FieldError]:
    """`before`: the schemas of the versions that are there already."""
    spec, status = definition.spec, definition.status
    wanted = f"{spec.names.plural}.{spec.group}"
    errors: list[FieldError] = []
    if definition.metadata.name and definition.metadata.name != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid("metadata.name", definition.metadata.name, text))
    errors += [*_spec(spec, before), *_stored(definition, status)]
    return errors + list(_approval(definition))


def validate_definition_update(new: CustomResourceDefinition, old: CustomResourceDefinition) -> list[FieldError]:
    """Once a kind is served, its group, its names and its scope stay."""
    before = {
        version.name: version.schema.open_api_schema
        for version in old.spec.versions
        if version.schema and version.schema.open_api_schema
    }
    errors = _validate(new, before)
    if any(condition.type == "Established" and condition.status == "True" for condition in old.status.conditions or ()):
        for path, mine, theirs in (
            ("spec.scope", new.spec.scope, old.spec.scope),
            ("spec.names.kind", new.spec.names.kind, old.spec.names.kind),
        ):
            if mine != theirs:
                errors.append(invalid(path, mine, "field is immutable"))
    for path, mine, theirs in (
        ("spec.group", new.spec.group, old.spec.group),
        ("spec.names.plural", new.spec.names.plural, old.spec.names.plural),
    ):
        if mine != theirs:
            errors.append(invalid(path, mine, "field is immutable"))
    return errors


def _spec(spec: CustomResourceDefinitionSpec, before: Mapping[str, JSONSchemaProps]) -> Iterator[FieldError]:
    yield from _group(spec.group)
    if not spec.scope:
        yield required("spec.scope")
    elif spec.scope not in ("Cluster", "Namespaced"):
        yield unsupported("spec.scope", spec.scope, ("Cluster", "Namespaced"))
    if spec.preserve_unknown_fields:
        yield invalid("spec.preserveUnknownFields", True, "must be false")
    yield from _versions(spec.versions, before)
    yield from _names(spec.names, "spec.names")
    yield from _conversion(spec)


def _group(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif problems := names.dns_subdomain(group):
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _versions(
    versions: Sequence[CustomResourceDefinitionVersion], before: Mapping[str, JSONSchemaProps]
) -> Iterator[FieldError]:
    spend(20 * len(versions))
    for index, version in enumerate(versions):
        for text in names.dns_1035_label(version.name):
            yield invalid(f"spec.versions[{index}].name", version.name, text)
        if version.deprecation_warning is not None and not version.deprecated:
            text = "can only be set for deprecated versions"
            yield invalid(f"spec.versions[{index}].deprecationWarning", version.deprecation_warning, text)
    problems = []
    if len({version.name for version in versions}) < len(versions):
        problems.append("must contain unique version names")
    if sum(version.storage for version in versions) != 1:
        problems.append("must have exactly one version marked as storage version")
    if problems:
        shown = [codec.to_dict(version) for version in versions] or None
        yield from (invalid("spec.versions", shown, text) for text in problems)
    yield from _contents(versions, before)


def _contents(
    versions: Sequence[CustomResourceDefinitionVersion], before: Mapping[str, JSONSchemaProps]
) -> Iterator[FieldError]:
    """Schemas, subresources, columns and selectable fields of all versions."""
    for place, version in _places(versions, "schema", "validation"):
        declared = version.schema.open_api_schema if version.schema else None
        if declared is None:
            yield required(f"{place}.openAPIV3Schema", "schemas are required")
        else:
            yield from schema_errors(declared, f"{place}.openAPIV3Schema", before.get(version.name))
    for place, version in _places(versions, "subresources", "subresources"):
        if version.subresources and version.subresources.scale:
            yield from _scale(version.subresources.scale, f"{place}.scale")
    for place, version in _places(versions, "additional_printer_columns", "additionalPrinterColumns"):
        spend(5 * len(version.additional_printer_columns))
        for index, column in enumerate(version.additional_printer_columns):
            yield from _column(column, f"{place}[{index}]")
    for place, version in _places(versions, "selectable_fields", "selectableFields"):
        yield from _selectable(version, place)


def _places(
    versions: Sequence[CustomResourceDefinitionVersion], attribute: str, name: str
) -> list[tuple[str, CustomResourceDefinitionVersion]]:
    said = [getattr(version, attribute) for version in versions]
    if said and all(column == said[0] for column in said):
        return [(f"spec.{name}", versions[0])]
    inner = "schema" if name == "validation" else name
    return [(f"spec.versions[{index}].{inner}", version) for index, version in enumerate(versions)]


def _scale(scale: CustomResourceSubresourceScale, place: str) -> Iterator[FieldError]:
    for name, path, root in (
        ("specReplicasPath", scale.spec_replicas_path, ".spec"),
        ("statusReplicasPath", scale.status_replicas_path, ".status"),
        ("labelSelectorPath", scale.label_selector_path, ""),
    ):
        here = f"{place}.{name}"
        if path is None or (not path and name == "labelSelectorPath"):
            continue
        if not path:
            yield required(here)
        elif (text := _path_problem(path)) or "[" in path:
            yield invalid(here, path, text or "should be a simple json path without array notation")
        elif root and not path.startswith(f"{root}."):
            yield invalid(here, path, f"should be a json path under {root}")
        elif not path.startswith((".spec.", ".status.")):
            yield invalid(here, path, "should be a json path under either .spec or .status")


def _path_problem(path: str) -> str:
    try:
        parse(path)
    except PathError as error:
        return str(error)
    return ""


def _column(column: CustomResourceColumnDefinition, place: str) -> Iterator[FieldError]:
    if not column.name:
        yield required(f"{place}.name")
    if not column.type:
        yield required(f"{place}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif column.type not in _COLUMN_TYPES:
        yield invalid(f"{place}.type", column.type, f"must be one of {','.join(_COLUMN_TYPES)}")
    if column.format and column.format not in _COLUMN_FORMATS:
        yield invalid(f"{place}.format", column.format, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not column.json_path:
        yield required(f"{place}.JSONPath")
    elif text := _path_problem(column.json_path):
        yield invalid(f"{place}.JSONPath", column.json_path, text)


def _selectable(version: CustomResourceDefinitionVersion, place: str) -> Iterator[FieldError]:
    known: set[str] = set()
    declared = version.schema.open_api_schema if version.schema else None
    for index, field in enumerate(version.selectable_fields):
        spend(3 + len(field.json_path) // 16)
        here = f"{place}[{index}].jsonPath"
        parts = field.json_path.split(".")[1:]
        node = declared
        for part in parts:
            node = node.properties.get(part) if node else None
        if not re.fullmatch(r"(\.[A-Za-z_][A-Za-z0-9_-]*)+", field.json_path):
            yield invalid(here, field.json_path, "is an invalid path: must be a simple json path")
        elif parts[0] == "metadata":
            yield invalid(here, field.json_path, "must not point to fields in metadata")
        elif node is None or node.type not in ("boolean", "integer", "string"):
            yield invalid(here, field.json_path, "must point to a field of type string, boolean or integer")
        if field.json_path in known:
            yield duplicate(here, field.json_path)
        known.add(field.json_path)
    if len(version.selectable_fields) > 8:
        yield FieldError(place, "Too many", "must have at most 8 items", str(len(version.selectable_fields)))


def _names(given: CustomResourceDefinitionNames, place: str) -> Iterator[FieldError]:
    single = (
        ("plural", given.plural),
        ("singular", given.singular),
        ("kind", given.kind),
        ("listKind", given.list_kind),
    )
    yield from (required(f"{place}.{name}") for name, value in single if not value)
    for name, value in single:
        mixed = name in ("kind", "listKind")
        problems = names.dns_1035_label(value.lower() if mixed else value) if value else []
        if problems:
            text = ",".join(problems)
            text = f"may have mixed case, but should otherwise match: {text}" if mixed else text
            yield invalid(f"{place}.{name}", value, text)
    if given.kind and given.kind == given.list_kind:
        yield invalid(f"{place}.listKind", given.list_kind, "kind and listKind may not be the same")
    for name, values in (("shortNames", given.short_names), ("categories", given.categories)):
        spend(2 * len(values))
        for index, value in enumerate(values):
            if problems := names.dns_1035_label(value):
                yield invalid(f"{place}.{name}[{index}]", value, ",".join(problems))


def _conversion(spec: CustomResourceDefinitionSpec) -> Iterator[FieldError]:
    """Versions differ by their schemas alone: there is nobody to ask for more."""
    strategy = spec.conversion.strategy if spec.conversion else "None"
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy == "Webhook":
        text = "this server calls no conversion webhooks: use strategy None, by which only the apiVersion changes"
        yield forbidden("spec.conversion.strategy", text)
    elif strategy != "None":
        yield unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif spec.conversion and spec.conversion.webhook:
        text = "should not be set when strategy is not set to Webhook"
        yield forbidden("spec.conversion.webhook", text)


def _stored(definition: CustomResourceDefinition, status: CustomResourceDefinitionStatus) -> Iterator[FieldError]:
    path, stored = "status.storedVersions", status.stored_versions
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    known = {version.name for version in definition.spec.versions}
    for index, name in enumerate(stored):
        if name not in known:
            yield invalid(f"{path}[{index}]", name, "missing from spec.versions; v must be removed from storedVersions")
    wanted = storage_version(definition)
    if wanted and wanted not in stored:
        yield invalid(path, list(stored), f"must have the storage version {wanted}")


def _approval(definition: CustomResourceDefinition) -> Iterator[FieldError]:
    if not is_protected(definition.spec.group):
        return
    place = f"metadata.annotations[{APPROVAL}]"
    said: Any = definition.metadata.annotations.get(APPROVAL)
    if not said:
        yield required(place, f"{_APPROVED}, {_SEE}")
    elif not approval(said)[0]:
        text = f'{_APPROVED} with either a URL or a reason starting with "unapproved", {_SEE}'
        yield invalid(place, said, text)


RULES: dict[type[Object], Rules] = {
    CustomResourceDefinition: Rules(create=validate_definition, update=validate_definition_update, finalizers="any")
}
