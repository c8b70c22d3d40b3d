"""Defaults of a schema, and the end of nulls where none is allowed."""

from typing import Any

from podfit.api.apiextensions import JSONSchemaProps


def fill(value: Any, schema: JSONSchemaProps) -> Any:
    """The value with its schema's defaults. A null that the schema does not allow counts as not given: a declared
    member gets its default or goes."""
    if isinstance(value, dict):
        return _object(value, schema)
    if isinstance(value, list) and schema.items is not None:
        items = schema.items
        return [fill(items.default if _absent(each, items) else each, items) for each in value]
    return value


def _absent(value: Any, schema: JSONSchemaProps) -> bool:
    return value is None and not schema.nullable and schema.default is not None


def _object(value: dict[str, Any], schema: JSONSchemaProps) -> dict[str, Any]:
    filled = {}
    additional = schema.additional_properties
    for name, inner in value.items():
        declared = schema.properties.get(name)
        if declared is None and isinstance(additional, JSONSchemaProps):
            filled[name] = fill(additional.default if _absent(inner, additional) else inner, additional)
        elif declared is None:
            filled[name] = inner
        elif inner is not None or declared.nullable:
            filled[name] = fill(inner, declared)
    for name, declared in schema.properties.items():
        if declared.default is not None and name not in filled:
            filled[name] = fill(declared.default, declared)
    return filled
