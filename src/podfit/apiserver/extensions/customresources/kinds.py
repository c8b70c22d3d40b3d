"""Resource entries of a CustomResourceDefinition: one for each served version."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from podfit.api.apiextensions.v1.types import (
    ESTABLISHED,
    CustomResourceColumnDefinition,
    CustomResourceDefinition,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    JSONSchemaProps,
    holds,
    storage_version,
)
from podfit.api.kinds.scale import SCALE
from podfit.api.meta import codec
from podfit.api.meta.columns import NAME, since
from podfit.api.meta.resource_info import STATUS, Column, ResourceInfo
from podfit.api.structural.custom import Custom, Declared, custom_type
from podfit.api.structural.jsonpath import led_to

_AGE = CustomResourceColumnDefinition(name="Age", type="date", json_path=".metadata.creationTimestamp")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_FREE = JSONSchemaProps(type="object", preserve_unknown_fields=True)


class CustomInfo(ResourceInfo, frozen=True, kw_only=True, eq=False):
    """An entry for a declared kind; `listed_as` is the kind of its lists."""

    type: type[Custom]
    listed_as: str

    @property
    def list_kind(self) -> str:
        return self.listed_as


def entries(definition: CustomResourceDefinition) -> tuple[CustomInfo, ...]:
    """The preferred version first; nothing before the definition is established."""
    if not holds(definition, ESTABLISHED):
        return ()
    served = sorted(
        (version for version in definition.spec.versions if version.served), key=lambda version: _rank(version.name)
    )
    return tuple(_entry(definition, version) for version in served)


def kept_as(definition: CustomResourceDefinition) -> CustomInfo | None:
    """The entry of the version in which objects are stored, served or not; None where there can be no objects."""
    if not holds(definition, ESTABLISHED):
        return None
    name = storage_version(definition)
    return next((_entry(definition, version) for version in definition.spec.versions if version.name == name), None)


def _rank(version: str) -> tuple[int, int, int, str]:
    """Stable versions before beta before alpha, the newest first, then those that are not called like a version."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return 3, 0, 0, version
    level = {None: 0, "beta": 1, "alpha": 2}[parts[2]]
    return level, -int(parts[1]), -int(parts[3] or 0), ""


def _entry(definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion) -> CustomInfo:
    spec, names = definition.spec, definition.status.accepted_names
    subresources = version.subresources or CustomResourceSubresources()
    declared = Declared(
        group=spec.group,
        version=version.name,
        kind=names.kind,
        namespaced=spec.scope == "Namespaced",
        schema=(version.schema and version.schema.open_api_schema) or _FREE,
        has_status=subresources.status is not None,
        scale=subresources.scale,
    )
    columns = version.additional_printer_columns or (_AGE,)
    return CustomInfo(
        type=custom_type(declared),
        group=spec.group,
        version=version.name,
        resource=names.plural,
        singular=names.singular,
        short_names=names.short_names,
        categories=names.categories,
        namespaced=declared.namespaced,
        unconditional=False,
        subresources=(*((STATUS,) if declared.has_status else ()), *((SCALE,) if declared.scale else ())),
        columns=(NAME, *map(_column, columns)),
        row=_row(columns),
        fields={field.json_path.removeprefix("."): _selected(field.json_path) for field in version.selectable_fields},
        listed_as=names.list_kind,
        stored_as=storage_version(definition),
        warning=_warning(definition, version),
    )


def _warning(definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion) -> str:
    if not version.deprecated:
        return ""
    group = definition.spec.group
    return version.deprecation_warning or f"{group}/{version.name} {definition.spec.names.kind} is deprecated"


def _column(column: CustomResourceColumnDefinition) -> Column:
    return Column(column.name, column.type, column.format, column.description, column.priority)


def _row(columns: tuple[CustomResourceColumnDefinition, ...]) -> Callable[[Custom, str], list[Any]]:
    def row(obj: Custom, now: str) -> list[Any]:
        document = codec.to_dict(obj)
        return [obj.metadata.name, *(_cell(led_to(document, column.json_path), column.type, now) for column in columns)]

    return row


def _cell(values: list[Any], kind: str, now: str) -> Any:
    """What the column shows; nothing where the path leads nowhere, or to another type than the column's."""
    if not values:
        return None
    value = values[0]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            return " ".join(map(_printed, values))
        case "integer":
            return int(value) if number else None
        case "number":
            return float(value) if number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _since(value, now) if isinstance(value, str) else None
    return None


def _since(moment: str, now: str) -> str:
    try:
        return since(moment, now) if moment else "<unknown>"
    except ValueError:
        return "<invalid>"


def _printed(value: object) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else str(value)


def _selected(path: str) -> Callable[[Custom], str]:
    def value(obj: Custom) -> str:
        found = led_to(obj.rest, path)
        return _printed(found[0]) if found and found[0] is not None else ""

    return value
