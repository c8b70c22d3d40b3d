"""CEL arithmetic and comparison, with 64-bit overflow errors."""

import math
import operator
from collections.abc import Callable
from typing import Any

from podfit.api.structural.cel.meter import Failure, Meter
from podfit.api.structural.cel.syntax import UInt
from podfit.api.structural.cel.values import Duration, Rows, Timestamp
from podfit.core.quantity import Quantity

_LEAST, _MOST = -(2**63), 2**63 - 1
_NO_OVERLOAD = "no such overload"
_YEARS = (-62_135_596_800 * 10**9, 253_402_300_799_999_999_999)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: int, like: Any) -> Any:
    """A number of 64 bits. Raises Failure."""
    if isinstance(like, UInt):
        if not 0 <= value < 2**64:
            raise Failure("unsigned integer overflow")
        return UInt(value)
    if not _LEAST <= value <= _MOST:
        raise Failure("integer overflow")
    return value


def _same(one: Any, other: Any) -> bool:
    return _number(one) and _number(other) and type(one) is type(other)


def _add(meter: Meter, one: Any, other: Any) -> Any:
    if _same(one, other):
        return one + other if isinstance(one, float) else whole(int.__add__(one, other), one)
    if (isinstance(one, str) and isinstance(other, str)) or (isinstance(one, bytes) and isinstance(other, bytes)):
        return one + other  # type: ignore[operator]  # the checker has seen that they can be added
    if isinstance(one, list | tuple | Rows) and isinstance(other, list | tuple | Rows):
        meter.copies(len(one) + len(other))
        return [*one, *other]
    match one, other:
        case (Duration(), Duration()):
            return Duration(whole(one.nanos + other.nanos, 0))
        case (Timestamp(), Duration()) | (Duration(), Timestamp()):
            return _moment(one.nanos + other.nanos)
        case (Quantity(), Quantity()):
            return one + other
    raise Failure(_NO_OVERLOAD)


def _moment(nanos: int) -> Timestamp:
    if not _YEARS[0] <= nanos <= _YEARS[1]:
        raise Failure("timestamp overflow")
    return Timestamp(nanos)


def _subtract(_: Meter, one: Any, other: Any) -> Any:
    if _same(one, other):
        return one - other if isinstance(one, float) else whole(int.__sub__(one, other), one)
    match one, other:
        case (Duration(), Duration()) | (Timestamp(), Timestamp()):
            return Duration(whole(one.nanos - other.nanos, 0))
        case (Timestamp(), Duration()):
            return _moment(one.nanos - other.nanos)
    raise Failure(_NO_OVERLOAD)


def _multiply(_: Meter, one: Any, other: Any) -> Any:
    if not _same(one, other):
        raise Failure(_NO_OVERLOAD)
    return one * other if isinstance(one, float) else whole(int.__mul__(one, other), one)


def _divide(_: Meter, one: Any, other: Any) -> Any:
    if not _same(one, other):
        raise Failure(_NO_OVERLOAD)
    if isinstance(one, float):
        if other:
            return one / other
        return math.nan if not one or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
    if not other:
        raise Failure("division by zero")
    return whole(_quotient(one, other), one)


def _quotient(one: int, other: int) -> int:
    found = abs(int(one)) // abs(int(other))
    return found if (one < 0) is (other < 0) else -found


def _modulo(_: Meter, one: Any, other: Any) -> Any:
    if not _same(one, other) or isinstance(one, float):
        raise Failure(_NO_OVERLOAD)
    if not other:
        raise Failure("modulus by zero")
    return whole(int(one) - int(other) * _quotient(one, other), one)


def _negate(_: Meter, value: Any) -> Any:
    if isinstance(value, float):
        return -value
    if not isinstance(value, int) or isinstance(value, bool | UInt):
        raise Failure(_NO_OVERLOAD)
    return whole(-value, 0)


def _not(_: Meter, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Failure(_NO_OVERLOAD)
    return not value


def ordered(one: Any, other: Any) -> bool:
    return (_number(one) and _number(other)) or (
        type(one) is type(other) and isinstance(one, bool | str | bytes | Timestamp | Duration)
    )


def _order(compare: Callable[[Any, Any], Any]) -> Callable[[Meter, Any, Any], bool]:
    def order(_: Meter, one: Any, other: Any) -> bool:
        if not ordered(one, other):
            raise Failure(_NO_OVERLOAD)
        return bool(compare(one, other))

    return order


OPERATORS: dict[str, Callable[..., Any]] = {
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _modulo,
    "-_": _negate,
    "!_": _not,
    "_<_": _order(operator.lt),
    "_<=_": _order(operator.le),
    "_>_": _order(operator.gt),
    "_>=_": _order(operator.ge),
}
