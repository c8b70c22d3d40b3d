"""Defaulting by a structural schema, and removal of nulls that it does not allow."""

from typing import Any

import msgspec

from podfit.api.apiextensions.v1.types import JSONSchemaProps

MOST_BYTES = 1024 * 1024
"""Of defaults that one object is given, as JSON: a short object may not become a long one."""


class TooMuch(ValueError):
    """The defaults of an object would be longer than `MOST_BYTES`."""


def fill(value: Any, schema: JSONSchemaProps) -> Any:
    """The value with its schema's defaults. A null that the schema does not allow counts as not given: a declared
    member gets its default or goes. Raises TooMuch before what is too much is made.
    """
    return _Filling().fill(value, schema)


def _absent(value: Any, schema: JSONSchemaProps) -> bool:
    return value is None and not schema.nullable and schema.default is not None


class _Filling:
    def __init__(self) -> None:
        self._left = MOST_BYTES

    def fill(self, value: Any, schema: JSONSchemaProps) -> Any:
        if isinstance(value, dict):
            return self._object(value, schema)
        if isinstance(value, list) and schema.items is not None:
            return [self._given(item, schema.items) for item in value]
        return value

    def _given(self, value: Any, schema: JSONSchemaProps) -> Any:
        return self._default(schema) if _absent(value, schema) else self.fill(value, schema)

    def _default(self, schema: JSONSchemaProps, name: str = "") -> Any:
        self._left -= len(msgspec.json.encode(schema.default)) + len(name)
        if self._left < 0:
            raise TooMuch(f"defaults are longer than {MOST_BYTES} bytes")
        return self.fill(schema.default, schema)

    def _object(self, value: dict[str, Any], schema: JSONSchemaProps) -> dict[str, Any]:
        filled = {}
        additional = schema.additional_properties
        for name, inner in value.items():
            declared = schema.properties.get(name)
            if declared is None and isinstance(additional, JSONSchemaProps):
                filled[name] = self._given(inner, additional)
            elif declared is None:
                filled[name] = inner
            elif inner is not None or declared.nullable:
                filled[name] = self.fill(inner, declared)
        for name, declared in schema.properties.items():
            if declared.default is not None and name not in filled:
                filled[name] = self._default(declared, name)
        return filled
