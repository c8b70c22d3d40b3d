"""The wire format of protobuf, read by tables: what a field number means in JSON.

What comes out is what JSON decoding would have given: binary values in base64, quantities and times as strings, and
what Go's JSON omits as empty is left out. A field number that a table does not have is skipped, as Go skips it; of a
field that occurs twice the last counts.

Fields and levels are counted while they are read (`Reading`), those that are skipped included. Payloads are views of
the one body: a message inside of a message is not copied.
"""

import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from math import isfinite
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.meta.base import Document
from podfit.apiserver.request.documents import DEEPEST, MOST_VALUES, check_depth, check_size, commas, too_deep, too_many
from podfit.core.times import format_micro, format_time

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DOUBLE = struct.Struct("<d")
MOST_FIELDS = 6 * MOST_VALUES
"""In one body. Go writes fields that JSON leaves out, and an entry of a map, one value in JSON, is three fields."""
MOST_LEVELS = 2 * DEEPEST
"""Messages within messages; what is one level in JSON may be a message around a message."""


class Malformed(ValueError):
    """The bytes are not the message that they should be."""


class Reading:
    """What reading one body has come to: fields that are left, values of raw JSON, levels."""

    __slots__ = ("deepest", "fields", "level", "raw_levels")

    def __init__(self) -> None:
        self.fields, self.level, self.deepest, self.raw_levels = MOST_FIELDS, 0, 0, 0

    def check(self, document: Document) -> None:
        """Raises 413 and 400 for a document of more values or levels than one may have: as of JSON."""
        if MOST_FIELDS - self.fields > MOST_VALUES:
            check_size(document)
        if self.deepest + self.raw_levels > DEEPEST:
            check_depth(document)


class _Holds(Enum):
    ONE = auto()
    MANY = auto()
    ENTRIES = auto()


class FieldType(msgspec.Struct, frozen=True):
    """How a field travels: its wire type, what its payload means, and the value that stands for "not given"."""

    wire: int
    read: Callable[[Any, Reading], Any]
    empty: Any = None
    holds: _Holds = _Holds.ONE


Layout: TypeAlias = Mapping[int, tuple[str, FieldType]]
"""Name in JSON and type by field number. Of a field without a name the value's members are the message's own."""


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The unsigned number that starts at an offset, and the offset after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise Malformed("unexpected end of the message")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
    raise Malformed("a number is longer than 10 bytes")


def _varints(data: memoryview, reading: Reading) -> Iterator[int]:
    """The numbers of a packed list."""
    at = 0
    while at < len(data):
        reading.fields -= 1
        if reading.fields < 0:
            raise too_many()
        value, at = _varint(data, at)
        yield value


def fields_of(data: memoryview, reading: Reading) -> Iterator[tuple[int, int, int | memoryview]]:
    """Number, wire type and payload of each field of a message, in its order."""
    at = 0
    while at < len(data):
        reading.fields -= 1
        if reading.fields < 0:
            raise too_many()
        key = data[at]
        if key < 0x80:  # most are one byte
            at += 1
        else:
            key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if not number:
            raise Malformed("field number 0")
        if wire == VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            size = data[at] if at < len(data) else 0x80
            if size < 0x80:
                at += 1
            else:
                size, at = _varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise Malformed(f"field {number} has the unknown wire type {wire}")
        if size > len(data) - at:
            raise Malformed("unexpected end of the message")
        yield number, wire, data[at : at + size]
        at += size


def read(message: Layout, data: memoryview, reading: Reading) -> Document:
    """Raises Malformed, 413 for too many fields and 400 for too many levels."""
    reading.level += 1
    if reading.level > reading.deepest:
        reading.deepest = reading.level
        if reading.level > MOST_LEVELS:
            raise too_deep()
    found: Document = {}
    for number, wire, payload in fields_of(data, reading):
        if number not in message:
            continue
        name, kind = message[number]
        if kind.holds is _Holds.MANY:
            items = _items(name, kind, wire, payload, reading)
            found.setdefault(name, []).extend(kind.read(item, reading) for item in items)
            continue
        value = kind.read(_payload(name, kind, wire, payload), reading)
        if kind.holds is _Holds.ENTRIES:
            (found.setdefault(name, {}) if name else found).update(value)
        elif value != kind.empty:
            found[name] = value
        else:
            found.pop(name, None)
    reading.level -= 1
    return found


def _payload(name: str, kind: FieldType, wire: int, payload: int | memoryview) -> int | memoryview:
    if wire != kind.wire:
        raise Malformed(f"{name or 'a message'} has wire type {wire} instead of {kind.wire}")
    return payload


def _items(
    name: str, kind: FieldType, wire: int, payload: int | memoryview, reading: Reading
) -> Iterator[int | memoryview]:
    """Numbers may come one by one or packed into one payload."""
    if wire == BYTES and kind.wire == VARINT and not isinstance(payload, int):
        yield from _varints(payload, reading)
    else:
        yield _payload(name, kind, wire, payload)


def _text(data: memoryview, _: Reading) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"a string is not UTF-8: {error}") from None


def _signed(value: int, _: Reading) -> int:
    return value - (1 << 64) if value >> 63 else value


def _flag(value: int, _: Reading) -> bool:
    return bool(value)


def _double(data: memoryview, _: Reading) -> int | float:
    """Written by JSON without a fraction where it has none."""
    value: float = _DOUBLE.unpack(data)[0]
    if not isfinite(value):
        raise Malformed(f"a number is {value}")
    return int(value) if value.is_integer() else value


def _base64(data: memoryview, _: Reading) -> str:
    return b64encode(data).decode("ascii")


def _raw(data: memoryview, _: Reading) -> memoryview:
    return data


def _json(data: memoryview, reading: Reading) -> Any:
    """What is written as JSON inside of the message counts as what it holds."""
    text = bytes(data)
    reading.fields -= commas(text, reading.fields + 1)
    if reading.fields < 0:
        raise too_many()
    reading.raw_levels = max(reading.raw_levels, text.count(b"{") + text.count(b"["))
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Malformed(f"a raw value is not JSON: {error}") from None


def _moment(data: memoryview, reading: Reading) -> datetime:
    parts = read({1: ("seconds", NUMBER), 2: ("nanos", NUMBER)}, data, reading)
    try:
        return _EPOCH + timedelta(seconds=parts.get("seconds", 0), microseconds=parts.get("nanos", 0) // 1000)
    except OverflowError:
        raise Malformed("a time is out of range") from None


def _time(data: memoryview, reading: Reading) -> str | None:
    """RFC 3339; Go writes a time that is not set as an empty message."""
    return format_time(_moment(data, reading)) if data else None


def _micro_time(data: memoryview, reading: Reading) -> str | None:
    return format_micro(_moment(data, reading)) if data else None


def _int_or_string(data: memoryview, reading: Reading) -> int | str:
    """Which of the two a value is stands in its first field."""
    found = read({1: ("text", FLAG), 2: ("number", NUMBER), 3: ("words", TEXT)}, data, reading)
    chosen: int | str = found.get("words", "") if found.get("text") else found.get("number", 0)
    return chosen


def message(fields: Callable[[], Layout]) -> FieldType:
    """A message, whose layout is asked for when there is one: a message may hold its like."""
    return FieldType(BYTES, lambda data, reading: read(fields(), data, reading))


def inline(fields: Callable[[], Layout]) -> FieldType:
    return replace(message(fields), holds=_Holds.ENTRIES)


def only(kind: FieldType, missing: object) -> FieldType:
    """A message around one value, which stands for it in JSON."""
    return FieldType(BYTES, lambda data, reading: read({1: ("value", kind)}, data, reading).get("value", missing))


def either(one: FieldType, other: FieldType, missing: object = None) -> FieldType:
    """A message of two fields, of which JSON has the value of the one that is there; the second where it has both."""

    def chosen(data: memoryview, reading: Reading) -> Any:
        found = read({1: ("one", one), 2: ("other", other)}, data, reading)
        return found.get("other", found.get("one", missing))

    return FieldType(BYTES, chosen)


def many(kind: FieldType) -> FieldType:
    return replace(kind, holds=_Holds.MANY)


def mapping(kind: FieldType, missing: object = "") -> FieldType:
    """Entries are messages of a key and a value, either of which is left out when empty."""
    entry: Layout = {1: ("key", TEXT), 2: ("value", kind)}

    def entry_of(data: memoryview, reading: Reading) -> Document:
        pair = read(entry, data, reading)
        return {pair.get("key", ""): pair.get("value", missing)}

    return FieldType(BYTES, entry_of, holds=_Holds.ENTRIES)


def pointer(kind: FieldType) -> FieldType:
    """A scalar whose zero differs from its absence."""
    return replace(kind, empty=None)


TEXT = FieldType(BYTES, _text, empty="")
NUMBER = FieldType(VARINT, _signed, empty=0)
FLAG = FieldType(VARINT, _flag, empty=False)
DOUBLE = FieldType(FIXED64, _double)
BINARY = FieldType(BYTES, _base64, empty="")
TIME = FieldType(BYTES, _time)
MICRO_TIME = FieldType(BYTES, _micro_time)
INT_OR_STRING = FieldType(BYTES, _int_or_string)
QUANTITY = only(TEXT, "0")
RAW = FieldType(BYTES, _raw)
JSON = only(FieldType(BYTES, _json), None)
