"""Lists of type set or map hold each item, or each key, once; embedded resources are checked as objects."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation.metadata import validate_meta
from podfit.api.meta.validation.names import path_segment
from podfit.core.fields import FieldError, duplicate, invalid, required

_NAME = "fakename"
"""Stands in for a name that is left out, which nobody is told of."""


def list_errors(value: Any, schema: JSONSchemaProps, path: str = "") -> Iterator[FieldError]:
    """Items that occur twice."""
    if isinstance(value, dict):
        additional = schema.additional_properties
        for name, inner in value.items():
            declared = schema.properties.get(name)
            if declared is not None:
                yield from list_errors(inner, declared, f"{path}.{name}" if path else name)
            elif isinstance(additional, JSONSchemaProps):
                yield from list_errors(inner, additional, f"{path}[{name}]")
    elif isinstance(value, list):
        yield from _repeated(value, schema, path)
        if schema.items is not None:
            for index, inner in enumerate(value):
                yield from list_errors(inner, schema.items, f"{path}[{index}]")


def _repeated(items: list[Any], schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    if schema.list_type not in ("set", "map"):
        return
    is_map = schema.list_type == "map"
    if is_map and (error := _no_object(items, path)):
        yield error
        return
    seen: set[bytes] = set()
    for index, item in enumerate(items):
        key = {name: item[name] for name in schema.list_map_keys if item and name in item} if is_map else item
        text = msgspec.json.encode(key, order="sorted")
        if text in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.add(text)


def _no_object(items: list[Any], path: str) -> FieldError | None:
    """The first item that has no keys because it is no object; null counts as one without keys."""
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            return invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
    return None


def embedded_errors(value: Any, schema: JSONSchemaProps, path: str = "") -> Iterator[FieldError]:
    """Objects within objects say what they are, and have metadata as all objects have."""
    if isinstance(value, dict):
        if schema.embedded_resource:
            yield from _identity_errors(value, path)
            yield from _metadata_errors(value, path)
        additional = schema.additional_properties
        for name, inner in value.items():
            declared = schema.properties.get(name)
            declared = additional if declared is None and isinstance(additional, JSONSchemaProps) else declared
            if isinstance(declared, JSONSchemaProps):
                yield from embedded_errors(inner, declared, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and schema.items is not None:
        for index, inner in enumerate(value):
            yield from embedded_errors(inner, schema.items, f"{path}[{index}]")


def _identity_errors(embedded: dict[str, Any], path: str) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        here, given = f"{path}.{name}", embedded.get(name)
        if name not in embedded:
            yield required(here, "must not be empty")
        elif not isinstance(given, str):
            yield invalid(here, given, "must be a string")
        elif not given:
            yield invalid(here, given, "must not be empty")
        elif name == "apiVersion" and given.count("/") > 1:
            yield invalid(here, given, f"unexpected GroupVersion string: {given}")


def _metadata_errors(embedded: dict[str, Any], path: str) -> Iterator[FieldError]:
    """A name may be left out, and where a namespace is named it has to be one."""
    given, here = embedded.get("metadata"), f"{path}.metadata"
    if given is None:
        return
    try:
        meta = codec.convert(given, ObjectMeta)
    except (msgspec.ValidationError, ValueError) as error:
        yield invalid(here, given, str(error))
        return
    named = meta if meta.name else replace(meta, name=_NAME)
    yield from validate_meta(named, namespaced=bool(meta.namespace), name_rule=path_segment, path=here)
