"""CEL type conversions. Each takes the meter first."""

import math
import re
from collections.abc import Callable
from typing import Any

from podfit.api.structural.cel.formatting import shown_text
from podfit.api.structural.cel.meter import Failure, Meter
from podfit.api.structural.cel.operators import whole
from podfit.api.structural.cel.syntax import UInt
from podfit.api.structural.cel.values import Duration, Kind, Timestamp, duration, kind_of, timestamp

_NO_OVERLOAD = "no such overload"
_LONGEST_NUMBER = 1024


def to_string(meter: Meter, value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else shown_text(meter, value)


def to_int(_: Meter, value: Any) -> int:
    match value:
        case Timestamp():
            return value.nanos // 10**9
        case float() if not -(2.0**63) < value < 2.0**63:
            raise Failure("integer overflow")
        case str() if not re.fullmatch(r"[+-]?\d{1,32}", value):
            raise Failure(f'strconv.ParseInt: parsing "{value[:256]}": invalid syntax')
        case bool():
            raise Failure(_NO_OVERLOAD)
    found: int = whole(int(value), 0)
    return found


def to_uint(_: Meter, value: Any) -> UInt:
    if isinstance(value, bool) or (isinstance(value, str) and not re.fullmatch(r"\d{1,32}", value)):
        raise Failure(_NO_OVERLOAD if isinstance(value, bool) else f'strconv.ParseUint: parsing "{value[:256]}"')
    if isinstance(value, float) and not math.isfinite(value):
        raise Failure("unsigned integer overflow")
    found: UInt = whole(int(value), UInt(0))
    return found


def to_double(_: Meter, value: Any) -> float:
    if isinstance(value, str) and len(value) > _LONGEST_NUMBER:
        raise Failure("strconv.ParseFloat: value out of range")
    return float(value)


def to_bool(_: Meter, value: Any) -> bool:
    match value:
        case True | "1" | "t" | "T" | "true" | "TRUE" | "True":
            return True
        case False | "0" | "f" | "F" | "false" | "FALSE" | "False":
            return False
    raise Failure(f'type conversion error from "{kind_of(value)}" to "bool"')


CONVERSIONS: dict[str, Callable[..., Any]] = {
    "string": to_string,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "bool": to_bool,
    "dyn": lambda _, value: value,
    "bytes": lambda _, value: value.encode() if isinstance(value, str) else value,
    "duration": lambda _, value: value if isinstance(value, Duration) else duration(value),
    "timestamp": lambda _, value: (
        value
        if isinstance(value, Timestamp)
        else timestamp(value)
        if isinstance(value, str)
        else Timestamp(value * 10**9)
    ),
    "type": lambda _, value: Kind(kind_of(value)),
}
