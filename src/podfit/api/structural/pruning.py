"""Pruning: members that a schema does not declare are dropped, and named."""

from typing import Any

from podfit.api.apiextensions.v1.types import JSONSchemaProps

_OBJECT = ("kind", "apiVersion", "metadata")  # what every object has, embedded ones too


def prune(document: Any, schema: JSONSchemaProps, dropped: list[str] | None = None) -> Any:
    """A whole object without what its kind does not declare; the paths of what went are added to `dropped`."""
    return _prune(document, schema, "", [] if dropped is None else dropped, whole=True)


def _prune(value: Any, schema: JSONSchemaProps, path: str, dropped: list[str], *, whole: bool = False) -> Any:
    if isinstance(value, list):
        items = schema.items
        if items is None:
            return value
        return [_prune(item, items, f"{path}[{index}]", dropped) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept = {}
    own = _OBJECT if whole or schema.embedded_resource else ()
    for name, inner in value.items():
        here = f"{path}.{name}" if path else name
        declared = None if name in own else schema.properties.get(name)
        if declared is not None:
            kept[name] = _prune(inner, declared, here, dropped)
        elif name in own or schema.preserve_unknown_fields or schema.additional_properties:
            kept[name] = _additional(inner, schema, here, dropped)
        else:
            dropped.append(here)
    return kept


def _additional(value: Any, schema: JSONSchemaProps, path: str, dropped: list[str]) -> Any:
    inner = schema.additional_properties
    return _prune(value, inner, path, dropped) if isinstance(inner, JSONSchemaProps) else value
