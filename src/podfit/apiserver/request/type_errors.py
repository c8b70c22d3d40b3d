"""Type errors of a document, in the words of Go's JSON decoder.

It goes through the document in its order and remembers the first member of a wrong type; a value that reads itself
(quantity, time, a number or a text) ends it at once. It names the innermost struct and the whole path, without places
in lists and keys of maps. All of it follows from the annotations of the kind; `go_types` knows upstream's names of
texts.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from podfit.api.meta.base import WIDE, Document, IntOrString, Struct
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.structural.custom import is_custom
from podfit.apiserver.request.canonical import TIMES
from podfit.apiserver.request.go_types import NAMED
from podfit.core import go_time
from podfit.core.go_base64 import wrong_byte
from podfit.core.quantity import MALFORMED, Quantity

JSON_KINDS = {dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "bool"}
_PLAIN = {str: "string", bool: "bool", float: "float64"}
_ACCEPTED: Mapping[Any, tuple[type, ...]] = {str: (str,), bool: (bool,), float: (int, float)}


class _Ended(Exception):
    """What a value said that reads itself."""


class _Place(msgspec.Struct, frozen=True):
    owner: str
    names: tuple[str, ...]

    def wrong(self, given: str, wanted: str) -> str:
        where = f"Go struct field {self.owner}.{'.'.join(self.names)}" if self.owner else "Go value"
        return f"json: cannot unmarshal {given} into {where} of type {wanted}"

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""


def first_misfit(document: object, kind: type[Struct]) -> str | None:
    """None for a document that Go takes."""
    start: type[Any] = kind
    if is_custom(kind):  # whose metadata is decoded by itself
        start, document = ObjectMeta, document.get("metadata") if isinstance(document, dict) else document
    found: str | None = None
    try:
        for text in _told(document, start, _Place("", ())):
            found = found or text
    except _Ended as ended:
        return str(ended)
    return found


def _told(value: Any, hint: Any, place: _Place) -> Iterator[str]:  # noqa: C901  (a list of the wire's types)
    if value is None:
        return
    if layout := TIMES.get(hint):
        _read_time(value, layout, place)
    elif hint == IntOrString:
        _read_number_or_text(value, place)
    elif hint is Quantity:
        _read_quantity(value)
    elif hint is bytes:
        yield from _binary(value, place)
    elif hint in _ACCEPTED:
        if not isinstance(value, _ACCEPTED[hint]) or (isinstance(value, bool) and hint is not bool):
            yield place.wrong(_kind(value), _go_type(hint, place))
    elif hint is int:
        yield from _number(value, place)
    elif get_origin(hint) in (tuple, dict):
        yield from _many(value, hint, place)
    elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield from _object(value, hint, place)


def _object(value: object, kind: type[msgspec.Struct], place: _Place) -> Iterator[str]:
    if not isinstance(value, dict):
        yield place.wrong(_kind(value), _go_type(kind, place))
        return
    members = _members(kind)
    for name, inner in value.items():
        if name in members:
            yield from _told(inner, members[name], _Place(kind.__name__, (*place.names, name)))


def _many(value: object, hint: object, place: _Place) -> Iterator[str]:
    is_list = get_origin(hint) is tuple
    if not isinstance(value, list if is_list else dict):
        yield place.wrong(_kind(value), _go_type(hint, place))
        return
    item = _bare(get_args(hint)[0 if is_list else 1])
    for inner in value.values() if isinstance(value, dict) else value:
        yield from _told(inner, item, place)


def _number(value: object, place: _Place) -> Iterator[str]:
    wanted = _go_type(int, place)
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield place.wrong(_kind(value), wanted)
    elif isinstance(value, float) or not -(2 ** (bits := int(wanted[3:]) - 1)) <= value < 2**bits:
        yield place.wrong(f"number {_written(value)}", wanted)


def _binary(value: object, place: _Place) -> Iterator[str]:
    if isinstance(value, str):
        if (byte := wrong_byte(value)) is not None:
            yield f"illegal base64 data at input byte {byte}"
    elif not isinstance(value, list):
        yield place.wrong(_kind(value), "[]uint8")


def _read_time(value: object, layout: str, place: _Place) -> None:
    if not isinstance(value, str):
        raise _Ended(place.wrong(_kind(value), "string"))
    try:
        go_time.in_utc(value, layout)
    except ValueError as error:
        raise _Ended(str(error)) from None


def _read_number_or_text(value: Any, place: _Place) -> None:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31):
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    raise _Ended(place.wrong(f"number {_written(value)}" if is_number else _kind(value), "int32"))


def _read_quantity(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Ended(MALFORMED)
    try:
        Quantity.parse(str(value))
    except ValueError as error:
        raise _Ended(str(error)) from None


def _written(number: float) -> str:
    return msgspec.json.encode(number).decode()


@lru_cache(maxsize=512)
def _members(kind: type[msgspec.Struct]) -> Document:
    hints = get_type_hints(kind, include_extras=True)
    return {member.encode_name: _bare(hints[member.name]) for member in msgspec.structs.fields(kind)}


def _bare(hint: object) -> Any:
    """Without notes and without None, but for the notes that make a text a time."""
    while hint not in TIMES and hint != IntOrString and get_origin(hint) in (Annotated, Union, UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        if get_origin(hint) is not Annotated and len(parts) != 1:
            return IntOrString if set(map(_bare, parts)) == {int, str} else Any
        hint = parts[0]
    return hint


def _go_type(hint: object, place: _Place) -> str:
    """The type that upstream declares for a member of this name."""
    if hint is str:
        return NAMED.get(f"{place.owner}.{place.name}", "string")
    if hint is int:
        return "int64" if place.name in WIDE else "int32"
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint is Quantity:
        return "resource.Quantity"
    if hint is bytes:
        return "[]uint8"
    if get_origin(hint) is tuple:
        return f"[]{_go_type(_bare(get_args(hint)[0]), place)}"
    if get_origin(hint) is dict:
        item = _bare(get_args(hint)[1])
        return "v1.ResourceList" if item is Quantity else f"map[string]{_go_type(item, place)}"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        version = next((part for part in reversed(hint.__module__.split(".")) if part in ("v1", "v2")), "v1")
        return f"{version}.{hint.__name__}"
    return "interface {}"


def _kind(value: object) -> str:
    return JSON_KINDS.get(type(value), "null")
