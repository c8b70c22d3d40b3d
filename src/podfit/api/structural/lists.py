"""Lists of type set or map hold each item, or each key, once; embedded resources are checked as objects."""

from collections.abc import Iterator
from typing import Any

import msgspec

from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.core.fields import FieldError, duplicate, required


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
    seen: set[bytes] = set()
    for index, item in enumerate(items):
        key = item
        if schema.list_type == "map":
            if not isinstance(item, dict):
                continue
            key = {name: item[name] for name in schema.list_map_keys if name in item}
        text = msgspec.json.encode(key, order="sorted")
        if text in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.add(text)


def embedded_errors(value: Any, schema: JSONSchemaProps, path: str = "") -> Iterator[FieldError]:
    """Objects within objects say what they are."""
    if isinstance(value, dict):
        if schema.embedded_resource:
            for name in ("apiVersion", "kind"):
                if not isinstance(value.get(name), str) or not value[name]:
                    yield required(f"{path}.{name}", "must not be empty")
        additional = schema.additional_properties
        for name, inner in value.items():
            declared = schema.properties.get(name)
            declared = additional if declared is None and isinstance(additional, JSONSchemaProps) else declared
            if isinstance(declared, JSONSchemaProps):
                yield from embedded_errors(inner, declared, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and schema.items is not None:
        for index, inner in enumerate(value):
            yield from embedded_errors(inner, schema.items, f"{path}[{index}]")
