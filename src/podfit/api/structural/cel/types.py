"""CEL types, which are assignable to which, and the types of a schema with the largest size of their values.

Without a bound of its own a list, map or text is as long as one request can carry (3 MiB), its parts written as short
as they can be.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.core.loop_slices import spend

LARGEST_REQUEST = 3 * 1024 * 1024
_RESERVED = (
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
)
_WRITTEN = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


@dataclass(frozen=True, slots=True)
class Type:
    """Objects are the same when their names are; `parts` are what a list, map or optional holds."""

    name: str
    parts: "tuple[Type, ...]" = ()
    members: "Mapping[str, Type] | None" = field(default=None, compare=False, hash=False)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parts))})" if self.parts else self.name


BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION, NULL, DYN, ERROR = map(
    Type, ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "null", "dyn", "!error!")
)
A, B = Type("A"), Type("B")
SCALARS = frozenset((BOOL, INT, UINT, DOUBLE, TIMESTAMP, DURATION))
_FREE = ("A", "B")


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(inner: Type) -> Type:
    return Type("optional_type", (inner,))


def loose(kind: Type) -> bool:
    return kind.name in ("dyn", "!error!")


Bound = dict[str, Type]


def fits(wanted: Type, given: Type, bound: Bound) -> bool:
    """Whether a value of one type may stand where another is wanted; `bound` says what free types are so far."""
    if wanted.name in _FREE:
        known = bound.get(wanted.name)
        if known is None or (loose(known) and not loose(given)):
            bound[wanted.name] = given
            return True
        return loose(given) or fits(known, given, bound)
    if given.name in _FREE:  # items of an empty list
        return True
    if loose(wanted) or loose(given):
        return True
    if wanted.name != given.name or len(wanted.parts) != len(given.parts):
        return given.name == "null" and wanted.name.startswith(("selfType", "optional_type"))
    return all(fits(one, other, bound) for one, other in zip(wanted.parts, given.parts, strict=True))


def filled(kind: Type, bound: Bound) -> Type:
    if kind.name in _FREE:
        return bound.get(kind.name, DYN)
    return replace(kind, parts=tuple(filled(part, bound) for part in kind.parts)) if kind.parts else kind


def escaped(name: str) -> str:
    """A member's name as an identifier; empty for one that rules cannot reach."""
    if name in _RESERVED:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_./-][A-Za-z0-9_./-]*", name):
        return ""
    return re.sub(r"__|[./-]", lambda match: _WRITTEN[match[0]], name)


@dataclass(frozen=True, slots=True)
class Declared:
    """What rules know of the values of a schema: `most` parts or characters, written in `least` bytes or more."""

    kind: Type
    schema: JSONSchemaProps
    most: int = 0
    least: int = 1
    inner: "Declared | None" = None
    members: "Mapping[str, Declared]" = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """How members are called in the document."""
    keyed: bool = False


_TEXT_SCHEMA = JSONSchemaProps(type="string")
_META = JSONSchemaProps(type="object", properties={"name": _TEXT_SCHEMA, "generateName": _TEXT_SCHEMA})
KEY = Declared(STRING, _TEXT_SCHEMA, 0, 2)
"""Of a map; upstream bounds no key, and counts none."""
_PLAIN = {"boolean": (BOOL, 4), "number": (DOUBLE, 1), "integer": (INT, 1)}
_FORMATS = {"duration": (DURATION, 32, 3), "date": (TIMESTAMP, 12, 12), "date-time": (TIMESTAMP, 32, 21)}


def properties(schema: JSONSchemaProps, *, root: bool) -> Mapping[str, JSONSchemaProps]:
    if not (root or schema.embedded_resource):
        return schema.properties
    return schema.properties | {"apiVersion": _TEXT_SCHEMA, "kind": _TEXT_SCHEMA, "metadata": _META}


def declared(schema: JSONSchemaProps, *, root: bool = False, path: str = "selfType") -> Declared | None:
    """None for values of which nothing is known."""
    spend(5)
    if schema.int_or_string:
        length = schema.max_length
        return Declared(DYN, schema, LARGEST_REQUEST - 2 if length is None else max(0, length) * 4)
    match schema.type:
        case "array":
            return _list(schema, path)
        case "object" if schema.additional_properties is not None:
            return _map(schema, path)
        case "object":
            return _object(schema, path, root=root)
        case "string":
            return _text(schema)
        case "boolean" | "number" | "integer":
            kind, least = _PLAIN[schema.type]
            return Declared(kind, schema, 0, least)
    return None


def _list(schema: JSONSchemaProps, path: str) -> Declared | None:
    inner = declared(schema.items, path=f"{path}.@idx") if schema.items is not None else None
    if inner is None:
        return None
    most = (LARGEST_REQUEST - 2) // (inner.least + 1) if schema.max_items is None else max(0, schema.max_items)
    return Declared(list_of(inner.kind), schema, most, 2, inner)


def _map(schema: JSONSchemaProps, path: str) -> Declared | None:
    values = schema.additional_properties
    inner = declared(values, path=f"{path}.@elem") if isinstance(values, JSONSchemaProps) else None
    if inner is None:
        return None
    limit = schema.max_properties
    most = (LARGEST_REQUEST - 2) // (inner.least + 6) if limit is None else max(0, limit)
    return Declared(map_of(STRING, inner.kind), schema, most, 2, inner, keyed=True)


def _object(schema: JSONSchemaProps, path: str, *, root: bool) -> Declared:
    members, names, least = {}, {}, 2
    for name, inner in properties(schema, root=root).items():
        known = declared(inner, path=f"{path}.{name}")
        if known is None:
            continue
        if short := escaped(name):
            members[short], names[short] = known, name
        if name in schema.required and inner.default is None:
            least += len(name) + known.least + 4
    kind = Type(path, (), {name: known.kind for name, known in members.items()})
    return Declared(kind, schema, 0, least, None, members, names)


def _text(schema: JSONSchemaProps) -> Declared:
    length = schema.max_length
    if schema.format in _FORMATS:
        kind, most, least = _FORMATS[schema.format]
        return Declared(kind, schema, most, least)
    if schema.format == "byte":
        return Declared(BYTES, schema, LARGEST_REQUEST - 2 if length is None else max(0, length), 2)
    if length is not None:
        return Declared(STRING, schema, max(0, length) * 4, 2)
    if schema.enum:
        longest = max(len(value.encode()) if isinstance(value, str) else 0 for value in schema.enum)
        return Declared(STRING, schema, longest, 2)
    return Declared(STRING, schema, LARGEST_REQUEST - 2, 2)


def most_in_request(known: Declared) -> int:
    """How often a value can be in one request."""
    return LARGEST_REQUEST // (known.least + 1)
