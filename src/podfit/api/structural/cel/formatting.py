"""CEL string formatting: `string(…)` and `format`. Every part that is written is charged, as parts may be shared."""

import math
import re
from typing import Any

from podfit.api.structural.cel.meter import Failure, Meter
from podfit.api.structural.cel.syntax import UInt
from podfit.api.structural.cel.values import Fields, Kind, Named, Rows, kind_of

_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d{1,9}))?([a-zA-Z]))|%")
_MOST_DIGITS = 1000


def shown_text(meter: Meter, value: Any) -> str:  # noqa: C901  (upstream's list of types)
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            meter.copies(len(value) // 10)
            return value
        case float():
            return _double(value)
        case int():
            return int.__str__(value)
        case bytes():
            return value.decode(errors="replace")
        case None:
            return "null"
        case Kind():
            return value.name
        case list() | tuple() | Rows():
            meter.copies(1 + len(value))
            return f"[{', '.join(shown_text(meter, part) for part in value)}]"
        case dict() | Named():
            meter.copies(1 + len(value))
            return f"{{{', '.join(sorted(f'{name}: {shown_text(meter, value[name])}' for name in value))}}}"
        case Fields():
            raise Failure("no such overload")
    return str(value)


def _double(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    return text.removesuffix(".0")


def string_format(meter: Meter, pattern: str, values: Any) -> str:
    parts, place, index = [], 0, 0
    for clause in _CLAUSE.finditer(pattern):
        parts.append(pattern[place : clause.start()])
        place = clause.end()
        if clause[1]:
            parts.append("%")
            continue
        if clause[3] is None:
            raise Failure("could not parse formatting clause: unexpected end of string")
        if index >= len(values):
            raise Failure(f"index {index} out of range")
        meter.copies(4)
        parts.append(_one(meter, clause[3], clause[2], values[index]))
        index += 1
    return "".join([*parts, pattern[place:]])


def _one(meter: Meter, verb: str, digits: str | None, value: Any) -> str:
    places = int(digits) if digits else 6
    if places > _MOST_DIGITS:
        raise Failure(f"precision {places} exceeds the maximum of {_MOST_DIGITS}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match verb:
        case "s":
            return shown_text(meter, value)
        case "d" if number and not isinstance(value, float):
            return int.__str__(value)
        case "f" | "e" if number:
            meter.copies(places)
            return format(float(value), f".{places}{verb}")
        case "b" | "o" if isinstance(value, int):
            return format(int(value), verb)
        case "x" | "X" if isinstance(value, int | UInt) and number:
            return format(int(value), verb)
        case "x" | "X" if isinstance(value, str | bytes):
            raw = value.encode() if isinstance(value, str) else value
            meter.copies(len(raw) // 5)
            return raw.hex() if verb == "x" else raw.hex().upper()
    raise Failure(f"error during formatting: %{verb} clause cannot be used on {kind_of(value)}")
