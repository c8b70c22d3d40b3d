"""Values as rules see them: typed by their schema, and only what it declares."""

import re
from typing import Any

from celpy import celtypes

from podfit.api.apiextensions import JSONSchemaProps

_RESERVED = (
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
)  # fmt: skip
_WRITTEN = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_META = JSONSchemaProps(
    type="object", properties={name: JSONSchemaProps(type="string") for name in ("name", "generateName")}
)
_TYPE = JSONSchemaProps(type="string")


def escaped(name: str) -> str:
    """A member's name as an identifier; empty for one that rules cannot reach."""
    if name in _RESERVED:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_./-][A-Za-z0-9_./-]*", name):
        return ""
    return re.sub(r"__|[./-]", lambda found: _WRITTEN[found[0]], name)


def declared(schema: JSONSchemaProps, *, root: bool = False) -> dict[str, JSONSchemaProps]:
    """The members that rules may name."""
    if not (root or schema.embedded_resource):
        return schema.properties
    return schema.properties | {"apiVersion": _TYPE, "kind": _TYPE, "metadata": _META}


class SetList(celtypes.ListType):
    """A list whose order does not count."""

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, list) or len(self) != len(other):
            return celtypes.BoolType(False)
        mine, theirs = list(self), list(other)
        return celtypes.BoolType(all(each in theirs for each in mine) and all(each in mine for each in theirs))

    def __ne__(self, other: Any) -> Any:
        return celtypes.BoolType(not self == other)

    __hash__ = None  # type: ignore[assignment]  # as every list


def typed(value: Any, schema: JSONSchemaProps, *, root: bool = False) -> Any:
    match value:
        case None:
            return None
        case bool():
            return celtypes.BoolType(value)
        case str():
            return _text(value, schema)
        case int() | float():
            whole = schema.type == "integer" or schema.int_or_string or (not schema.type and isinstance(value, int))
            return celtypes.IntType(int(value)) if whole else celtypes.DoubleType(value)
        case list():
            items = schema.items or JSONSchemaProps()
            kind = SetList if schema.list_type in ("set", "map") else celtypes.ListType
            return kind([typed(each, items) for each in value])
    inner = schema.additional_properties
    if isinstance(inner, JSONSchemaProps):
        return celtypes.MapType({celtypes.StringType(name): typed(each, inner) for name, each in value.items()})
    found = {}
    for name, each in declared(schema, root=root).items():
        if name in value and escaped(name) and not (value[name] is None and not each.nullable):
            found[celtypes.StringType(escaped(name))] = typed(value[name], each)
    return celtypes.MapType(found)


def _text(value: str, schema: JSONSchemaProps) -> Any:
    try:
        match schema.format:
            case "date-time":
                return celtypes.TimestampType(value)
            case "date":
                return celtypes.TimestampType(f"{value}T00:00:00Z")
            case "duration":
                return celtypes.DurationType(value)
            case "byte":
                return celtypes.BytesType(value.encode())
    except ValueError:
        pass  # upstream's formats are wider than CEL's own: such a value stays a text
    return celtypes.StringType(value)
