"""`Member`s of a structural schema, so that patch and apply treat custom resources as they do Structs."""

from typing import Any, Literal

from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.meta.base import ATOMIC, SET, Listing
from podfit.api.meta.member import Member, Node
from podfit.api.meta.v1.types import ObjectMeta

_PLAIN = Listing()
_SCALARS = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}


class SchemaNode(Node):
    """An object of a schema; the root is the whole object."""

    def __init__(self, schema: JSONSchemaProps, *, root: bool = False) -> None:
        self.schema = schema
        self.root = root
        self.whole = schema.map_type == "atomic"
        self.open = bool(schema.preserve_unknown_fields)

    def members(self) -> dict[str, Member]:
        found = {name: member_of(name, prop) for name, prop in self.schema.properties.items()}
        if self.root or self.schema.embedded_resource:
            text = Member("", "scalar", None, _PLAIN, scalar="string")
            found |= {"apiVersion": text, "kind": text, "metadata": Member("metadata", "struct", ObjectMeta, _PLAIN)}
        return found


def member_of(name: str, schema: JSONSchemaProps) -> Member:
    if schema.type == "array":
        return _list(name, schema)
    if schema.type == "object" and _is_map(schema):
        listing = ATOMIC if schema.map_type == "atomic" else _PLAIN
        inner = schema.additional_properties
        if not isinstance(inner, JSONSchemaProps):
            return Member(name, "map", None, listing)
        return Member(name, "map", _item(inner), listing, scalar=_scalar(inner))
    if schema.type == "object":
        return Member(name, "struct", SchemaNode(schema), _PLAIN)
    scalar = _scalar(schema)
    return Member(name, "scalar" if scalar or schema.int_or_string else "any", None, _PLAIN, scalar=scalar)


def _scalar(schema: JSONSchemaProps) -> str:
    return "" if schema.int_or_string else _SCALARS.get(schema.type, "")


def _is_map(schema: JSONSchemaProps) -> bool:
    return bool(schema.additional_properties) and not schema.properties


def _item(schema: JSONSchemaProps) -> Node | None:
    """What an item or a value is, where it declares parts of its own."""
    return SchemaNode(schema) if schema.type == "object" and not _is_map(schema) else None


def _list(name: str, schema: JSONSchemaProps) -> Member:
    items = schema.items or JSONSchemaProps()
    kind: Literal["list"] = "list"
    if schema.list_type == "set":
        return Member(name, kind, _item(items), SET, scalar=_scalar(items))
    if schema.list_type != "map":
        return Member(name, kind, _item(items), ATOMIC, scalar=_scalar(items))
    keys: list[tuple[str, Any]] = [
        (key, items.properties.get(key, JSONSchemaProps()).default) for key in sorted(schema.list_map_keys)
    ]
    return Member(name, kind, _item(items), Listing(keys=tuple(schema.list_map_keys)), keys=tuple(keys))
