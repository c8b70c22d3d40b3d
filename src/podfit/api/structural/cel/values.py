"""CEL values: values of a schema are converted lazily, when a rule looks at them.

A document stays as it is; `Fields`, `Rows` and `Named` show an object, a list and a map of it. What was computed is
plain Python: bool, int, `UInt`, float, str, bytes, list, dict, None, and the kinds below.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from podfit.api.structural.cel.syntax import UInt
from podfit.api.structural.cel.types import BYTES, DOUBLE, DURATION, INT, TIMESTAMP, Declared

_SECOND = 10**9
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_PART = re.compile(r"(\d{1,19}(?:\.\d{0,19})?|\.\d{1,19})(ns|us|µs|μs|ms|s|m|h)")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-]\d\d:\d\d))")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    nanos: int

    def __str__(self) -> str:
        whole, rest = divmod(self.nanos, _SECOND)
        text = (_EPOCH + timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        return text + (f".{rest:09d}".rstrip("0") if rest else "") + "Z"


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int

    def __str__(self) -> str:
        whole, rest = divmod(abs(self.nanos), _SECOND)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if self.nanos < 0 else ''}{whole}{fraction}s"


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional value."""

    given: bool
    value: Any = None


@dataclass(frozen=True, slots=True)
class Kind:
    """What `type(…)` gives."""

    name: str


def timestamp(text: str) -> Timestamp:
    """Raises ValueError."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"invalid timestamp {text[:64]!r}")
    zone = found[4] or "+00:00"
    moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}") - _EPOCH
    return Timestamp((moment.days * 86400 + moment.seconds) * _SECOND + int((found[3] or "0").ljust(9, "0")))


def duration(text: str) -> Duration:
    """Raises ValueError."""
    rest, total = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+"), 0
    if rest == "0":
        return Duration(0)
    place = 0
    while place < len(rest):
        found = _PART.match(rest, place)
        if found is None or place > 256:
            raise ValueError(f"invalid duration {text[:64]!r}")
        whole, _, part = found[1].partition(".")
        unit = _UNITS[found[2]]
        total += int(whole or "0") * unit + (int(part) * unit // 10 ** len(part) if part else 0)
        place = found.end()
    if not rest or total >= 2**63:
        raise ValueError(f"invalid duration {text[:64]!r}")
    return Duration(-total if text.startswith("-") else total)


class Fields:
    """An object: only what its schema declares."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: dict[str, Any], declared: Declared) -> None:
        self.raw, self.declared = raw, declared

    def has(self, name: str) -> bool:
        known = self.declared.members.get(name)
        written = self.declared.names.get(name, "")
        return known is not None and written in self.raw and (self.raw[written] is not None or known.schema.nullable)

    def get(self, name: str) -> Any:
        return typed_value(self.raw[self.declared.names[name]], self.declared.members[name])

    def names(self) -> list[str]:
        return [name for name in self.declared.members if self.has(name)]


class Rows:
    """A list; one whose items are told apart by themselves or by keys is equal in any order."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: list[Any], declared: Declared) -> None:
        self.raw, self.declared = raw, declared

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, index: int) -> Any:
        inner = self.declared.inner
        return typed_value(self.raw[index], inner) if inner is not None else self.raw[index]

    def __iter__(self) -> Iterator[Any]:
        inner = self.declared.inner
        return (typed_value(item, inner) for item in self.raw) if inner is not None else iter(self.raw)

    @property
    def unordered(self) -> bool:
        return self.declared.schema.list_type in ("set", "map")

    def fingerprint(self) -> list[bytes]:
        return sorted(msgspec.json.encode(item, order="sorted") for item in self.raw)


class Named:
    """A map of texts."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: dict[str, Any], declared: Declared) -> None:
        self.raw, self.declared = raw, declared

    def __len__(self) -> int:
        return len(self.raw)

    def __contains__(self, key: object) -> bool:
        return key in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __getitem__(self, key: str) -> Any:
        inner = self.declared.inner
        return typed_value(self.raw[key], inner) if inner is not None else self.raw[key]


def typed_value(raw: Any, declared: Declared) -> Any:
    """A value of a document as its schema says; one that its schema does not allow stays what it is."""
    match raw:
        case dict():
            if declared.members or not declared.keyed:
                return Fields(raw, declared) if declared.kind.name != "dyn" else raw
            return Named(raw, declared)
        case list():
            return Rows(raw, declared) if declared.inner is not None else raw
        case bool() | None:
            return raw
        case int() | float():
            if declared.kind is INT:
                return int(raw)
            return float(raw) if declared.kind is DOUBLE else raw
        case str() if declared.kind in (TIMESTAMP, DURATION, BYTES):
            return _read(raw, declared)
    return raw


def _read(text: str, declared: Declared) -> Any:
    """Upstream's formats are wider than CEL's own: a value that CEL cannot read stays a text."""
    try:
        if declared.kind is DURATION:
            return duration(text)
        if declared.kind is BYTES:
            return text.encode()
        return timestamp(f"{text}T00:00:00Z" if declared.schema.format == "date" else text)
    except ValueError:
        return text


def kind_of(value: Any) -> str:  # noqa: C901  (a list of CEL's types)
    match value:
        case bool():
            return "bool"
        case UInt():
            return "uint"
        case int():
            return "int"
        case float():
            return "double"
        case str():
            return "string"
        case bytes():
            return "bytes"
        case list() | tuple() | Rows():
            return "list"
        case dict() | Named():
            return "map"
        case Fields():
            return value.declared.kind.name
        case None:
            return "null_type"
        case Timestamp():
            return "timestamp"
        case Duration():
            return "duration"
        case Maybe():
            return "optional_type"
        case Kind():
            return "type"
    return type(value).__name__


def size_of(value: Any) -> int:
    """As costs count it: 1 for what has no parts."""
    if isinstance(value, str | bytes | list | tuple | dict | Rows | Named):
        return len(value)
    if isinstance(value, Fields):
        return len(value.raw)
    return 4 if getattr(value, "version", 0) == 4 else 16 if getattr(value, "version", 0) == 6 else 1
