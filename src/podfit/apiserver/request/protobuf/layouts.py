"""The layout of a kind's messages: field numbers from `numbers.txt`, what each field holds from the Structs.

A Struct says by its types what Go's types say: a scalar that may be None is a pointer there, whose zero is a value; of
others the zero is left out, as JSON leaves it out.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.authentication.v1.types import TokenRequest
from podfit.api.autoscaling.v1.types import Scale
from podfit.api.core.v1.pods.types import Binding
from podfit.api.meta.base import MicroTime, Named, Struct, Time
from podfit.api.meta.v1.types import DeleteOptions
from podfit.api.policy.v1.types import Eviction
from podfit.api.registry import DECLARED
from podfit.apiserver.request.protobuf.wire import (
    BINARY,
    DOUBLE,
    FLAG,
    INT_OR_STRING,
    JSON,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    TEXT,
    TIME,
    FieldType,
    Layout,
    either,
    inline,
    many,
    mapping,
    message,
    only,
    pointer,
)
from podfit.core.quantity import Quantity

Numbers: TypeAlias = Mapping[str, int]


@cache
def published() -> Mapping[tuple[str, str], Numbers]:
    """Field numbers by name in JSON, by section and message."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    section = ""
    for line in _lines(files(__package__).joinpath("numbers.txt").read_text()):
        if line.startswith("["):
            section = line.strip("[]")
            continue
        name, _, fields = line.partition(":")
        pairs = (part.rpartition("=") for part in fields.split())
        found[section, name] = {field: int(number) for field, _, number in pairs}
    return found


def _lines(text: str) -> Iterator[str]:
    """Without comments and empty lines, an entry with the lines that continue it as one."""
    entry = ""
    for line in text.splitlines():
        if line.startswith(" "):
            entry += line
            continue
        if entry:
            yield entry
        entry = "" if line.startswith("#") else line
    if entry:
        yield entry


_PACKAGE = "podfit.api."
_OTHERS = (Binding, Eviction, Scale, TokenRequest)
"""Kinds of bodies that are no resource of their own."""
_SCALARS: Mapping[Any, FieldType] = {
    str: TEXT,
    int: NUMBER,
    bool: FLAG,
    bytes: BINARY,
    Quantity: QUANTITY,
    Time: TIME,
    MicroTime: MICRO_TIME,
    Any: JSON,
}
_VALUELESS: Mapping[FieldType, Any] = {QUANTITY: "0"}
"""What an entry of a map holds that has no value, where it is no empty string."""


def layout_of(version: str, kind: str) -> Layout | None:
    """The layout of a body that says to be of this kind; None when it is not known as protobuf."""
    if kind == "DeleteOptions":  # every group has its options
        return _layout(DeleteOptions)
    found = bodies().get((version, kind))
    return _layout(found) if found and section_of(found) else None


@cache
def bodies() -> Mapping[tuple[str, str], type[Struct]]:
    types: Iterator[Any] = iter((*(info.type for info in DECLARED), *_OTHERS))
    return {(kind().api_version, kind().kind): kind for kind in types}


def section_of(struct: type[Struct]) -> str:
    """Where `numbers.txt` has a Struct: under its module, or a package around it; empty when it has it nowhere."""
    place = struct.__module__.removeprefix(_PACKAGE)
    while place and (place, struct.__name__) not in published():
        place = place.rpartition(".")[0]
    return place


@cache
def _layout(struct: type[Struct]) -> Layout:
    section = section_of(struct)
    hints = get_type_hints(struct, include_extras=True)
    held = {field.encode_name: hints[field.name] for field in msgspec.structs.fields(struct)}
    return dict(_fields(section, published()[section, struct.__name__], held))


def _fields(section: str, numbers: Numbers, held: Mapping[str, Any]) -> Iterator[tuple[int, tuple[str, FieldType]]]:
    for name, number in numbers.items():
        if name.startswith("+"):
            inside = published()[section, name[1:]]
            yield number, ("", inline(_once(partial(_fields, section, inside, held))))
        else:
            yield number, (name, _type(held[name]))


def _once(fields: Callable[[], Iterator[tuple[int, tuple[str, FieldType]]]]) -> Callable[[], Layout]:
    return cache(lambda: dict(fields()))


def _type(hint: object) -> FieldType:
    """What a field of this type holds; `X | None` is a pointer."""
    if named := _named(hint):
        return _UNIONS[named](hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _type(parts[0])
    if origin in (Union, UnionType):
        return _union([part for part in parts if part is not type(None)], optional=type(None) in parts)
    if origin is tuple:
        return many(_type(parts[0]))
    if origin is dict:
        return _map(parts[1])
    return message(partial(_layout, hint))


def _union(kinds: list[Any], *, optional: bool) -> FieldType:
    if kinds == [int, str]:
        return INT_OR_STRING
    if kinds == [int, float]:
        return DOUBLE
    (kind,) = kinds
    found = _type(kind)
    return pointer(found) if optional else found


def _map(value: object) -> FieldType:
    if value is Any:  # FieldsV1, the only map of anything
        return JSON
    if get_origin(value) is tuple:  # a list in a map is a message around it
        return mapping(only(_type(value), []), [])
    kind = _type(value)
    return mapping(kind, _VALUELESS.get(kind, "" if kind in (TEXT, BINARY) else {}))


def _named(hint: object) -> str:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note.name for note in notes if isinstance(note, Named)), "")


def _schema(_: object = None) -> FieldType:
    return message(partial(_layout, JSONSchemaProps))


_UNIONS: Mapping[str, Callable[[Any], FieldType]] = {
    "JSON": lambda _: JSON,
    "JSONSchemaPropsOrArray": lambda _: either(_schema(), many(_schema())),
    "JSONSchemaPropsOrBool": lambda _: either(pointer(FLAG), _schema(), missing=False),
    "JSONSchemaPropsOrStringArray": lambda _: either(_schema(), many(TEXT)),
}
"""Types of a schema that JSON does not name: each has a message of its own."""
