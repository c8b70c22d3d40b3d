"""Functions of texts, lists, sets, quantities, versions and optional values, and the table of all functions.

Each takes the meter first. What it makes larger than what it got is charged before it is made.
"""

import re
from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any

from podfit.api.structural.cel.clocks import TIME_FUNCTIONS
from podfit.api.structural.cel.conversions import CONVERSIONS
from podfit.api.structural.cel.formatting import string_format
from podfit.api.structural.cel.meter import Failure, Meter, contains, equal
from podfit.api.structural.cel.networks import NETWORK_FUNCTIONS
from podfit.api.structural.cel.operators import OPERATORS, ordered, whole
from podfit.api.structural.cel.patterns import compiled
from podfit.api.structural.cel.values import Duration, Maybe, Timestamp
from podfit.api.structural.formats import fits
from podfit.core.quantity import Quantity

_LONGEST_VERSION = 1024
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class Version(tuple[Any, ...]):
    """A semantic version; one with a pre-release part is before the one without."""

    __slots__ = ()

    @classmethod
    def read(cls, text: str) -> "Version":
        found = _VERSION.fullmatch(text) if len(text) <= _LONGEST_VERSION else None
        if found is None or any(len(part) > 18 for part in found.groups()[:3]):
            raise ValueError(f"invalid semantic version {text[:64]!r}")
        later = tuple(_rank(part) for part in (found[4] or "").split(".") if part)
        return cls((int(found[1]), int(found[2]), int(found[3]), not found[4], later))


def _rank(part: str) -> tuple[bool, int, str]:
    return (not part.isdigit(), int(part[:18]) if part.isdigit() else 0, part)


def is_version(_: Meter, text: str, loose: bool = False) -> bool:
    try:
        Version.read(plain(text) if loose else text)
    except ValueError:
        return False
    return True


def plain(text: str) -> str:
    """Without `v` and zeros before a number, and with the parts that are left out."""
    parts = text.removeprefix("v").split(".", 2)
    return ".".join([part.lstrip("0") or "0" if part.isdigit() else part for part in parts] + ["0"] * (3 - len(parts)))


_NO_OVERLOAD = "no such overload"
_LONGEST_NUMBER = 1024
_FORMATS = {
    "dns1123Label": r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
    "dns1035Label": r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?",
    "dns1123Subdomain": r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    "qualifiedName": r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
    "labelValue": r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?",
}
_BY_NAME = {"uri": "uri", "uuid": "uuid", "byte": "byte", "date": "date", "datetime": "date-time"}


# ---------------------------------------------------------------- lists and sets


def _is_sorted(_: Meter, items: Any) -> bool:
    return all(ordered(one, other) and one <= other for one, other in pairwise(items))


def _sum(meter: Meter, items: Any) -> Any:
    total: Any = None
    for item in items:
        total = item if total is None else OPERATORS["_+_"](meter, total, item)
    return 0 if total is None else total


def _extreme(choose: Callable[..., Any], name: str) -> Callable[[Meter, Any], Any]:
    def extreme(_: Meter, items: Any) -> Any:
        if not len(items):
            raise Failure(f"{name} called on empty list")
        return choose(items)

    return extreme


def _index_of(meter: Meter, where: Any, what: Any, start: int = 0) -> int:
    if isinstance(where, str):
        if not 0 <= start <= len(where):
            raise Failure(f"index out of range: {start}")
        return where.find(what, start)
    return next((index for index, item in enumerate(where) if equal(item, what, meter)), -1)


def _last_index_of(meter: Meter, where: Any, what: Any, end: int | None = None) -> int:
    if isinstance(where, str):
        if end is not None and not 0 <= end <= len(where):
            raise Failure(f"index out of range: {end}")
        return where.rfind(what) if end is None else where.rfind(what, 0, end + len(what))
    return max((index for index, item in enumerate(where) if equal(item, what, meter)), default=-1)


def _holds_all(meter: Meter, one: Any, other: Any) -> bool:
    return all(contains(one, item, meter) for item in other)


# ---------------------------------------------------------------- texts


def _substring(_: Meter, text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= len(text) or last > len(text) or (end is not None and end < start):
        raise Failure(f"index out of range: {start if not 0 <= start <= len(text) else last}")
    return text[start:last]


def _char_at(_: Meter, text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise Failure(f"index out of range: {at}")
    return text[at : at + 1]


def _split(meter: Meter, text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    meter.copies(len(text) if not by else text.count(by))
    if by:
        return text.split(by, most - 1 if most > 0 else -1)
    return list(text) if most < 0 or most >= len(text) else [*text[: most - 1], text[most - 1 :]]


def _replace(meter: Meter, text: str, old: str, new: str, most: int = -1) -> str:
    times = text.count(old) if most < 0 else min(most, text.count(old))
    meter.copies(times * len(new))
    return text.replace(old, new, most)


def _join(_: Meter, items: Any, between: str = "") -> str:
    return between.join(items)


def _ascii(change: Callable[[str], str]) -> Callable[[Meter, str], str]:
    def changed(_: Meter, text: str) -> str:
        return (
            change(text)
            if text.isascii()
            else "".join(change(letter) if letter.isascii() else letter for letter in text)
        )

    return changed


def _matches(_: Meter, text: str, pattern: str) -> bool:
    return compiled(pattern).search(text) is not None


def _find(_: Meter, text: str, pattern: str) -> str:
    found = compiled(pattern).search(text)
    return found[0] if found else ""


def _find_all(_: Meter, text: str, pattern: str, most: int = -1) -> list[str]:
    matches = compiled(pattern).finditer(text)
    return [match[0] for match in (matches if most < 0 else islice(matches, most))]


def _quote(_: Meter, text: str) -> str:
    return '"' + "".join(_QUOTED.get(letter, letter) for letter in text) + '"'


_QUOTED = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def _size(_: Meter, value: Any) -> int:
    if isinstance(value, int | float | bool) or value is None:
        raise Failure(_NO_OVERLOAD)
    return len(value)


# ---------------------------------------------------------------- quantities and versions


def _quantity(_: Meter, text: str) -> Quantity:
    if len(text) > _LONGEST_NUMBER:
        raise Failure("quantities must match the regular expression")
    return Quantity.parse(text)


def _is_quantity(meter: Meter, text: str) -> bool:
    try:
        _quantity(meter, text)
    except (ValueError, Failure):
        return False
    return True


def _amount(value: Any) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity.parse(str(value))


def _whole(_: Meter, value: Quantity) -> int:
    if value.nano % 10**9:
        raise Failure("cannot convert value to integer")
    found: int = whole(value.nano // 10**9, 0)
    return found


def _compare(_: Meter, one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


# ---------------------------------------------------------------- formats and optional values


def conversion(name: str) -> Callable[..., Any]:
    """Of what has no implementation: a call that came through the checker always has one but for `authorizer`."""

    def missing(_: Meter, *__: Any) -> Any:
        raise Failure(f"this server has no function '{name}'")

    return missing


def _named_format(_: Meter, name: str) -> Maybe:
    return Maybe(True, name) if name.removesuffix("Prefix") in _FORMATS or name in _BY_NAME else Maybe(False)


def _validated(_: Meter, name: str, text: str) -> Maybe:
    if name in _BY_NAME:
        good = fits(text, _BY_NAME[name])
    else:
        given = f"{text[:-1]}a" if name.endswith("Prefix") and text.endswith("-") else text
        good = len(text) <= 317 and compiled(f"^(?:{_FORMATS[name.removesuffix('Prefix')]})$").search(given) is not None
    return Maybe(False) if good else Maybe(True, [f"does not match format {name}"])


def _non_zero(_: Meter, value: Any) -> Maybe:
    return Maybe(True, value) if value or isinstance(value, Timestamp | Duration) else Maybe(False)


def _value(_: Meter, value: Maybe) -> Any:
    if not value.given:
        raise Failure("optional.none() dereference")
    return value.value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **TIME_FUNCTIONS,
    **NETWORK_FUNCTIONS,
    **CONVERSIONS,
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _extreme(min, "min"),
    "max": _extreme(max, "max"),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "sets.contains": _holds_all,
    "sets.equivalent": lambda meter, one, other: _holds_all(meter, one, other) and _holds_all(meter, other, one),
    "sets.intersects": lambda meter, one, other: any(contains(one, item, meter) for item in other),
    "size": _size,
    "contains": lambda _, text, part: part in text,
    "startsWith": lambda _, text, part: text.startswith(part),
    "endsWith": lambda _, text, part: text.endswith(part),
    "charAt": _char_at,
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda _, text: text.strip(),
    "join": _join,
    "matches": _matches,
    "find": _find,
    "findAll": _find_all,
    "format": string_format,
    "strings.quote": _quote,
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "sign": lambda _, value: int(value.nano > 0) - int(value.nano < 0),
    "asInteger": _whole,
    "isInteger": lambda _, value: value.nano % 10**9 == 0 and abs(value.nano) < 2**63 * 10**9,
    "asApproximateFloat": lambda _, value: value.nano / 1e9,
    "isGreaterThan": lambda _, one, other: one > other,
    "isLessThan": lambda _, one, other: one < other,
    "compareTo": _compare,
    "add": lambda _, one, other: one + _amount(other),
    "sub": lambda _, one, other: one - _amount(other),
    "semver": lambda _, text, loose=False: Version.read(plain(text) if loose else text),
    "isSemver": is_version,
    "major": lambda _, value: value[0],
    "minor": lambda _, value: value[1],
    "patch": lambda _, value: value[2],
    "format.named": _named_format,
    "validate": _validated,
    "hasValue": lambda _, value: value.given,
    "value": _value,
    "orValue": lambda _, value, other: value.value if value.given else other,
    "or": lambda _, value, other: value if value.given else other,
    "optional.of": lambda _, value: Maybe(True, value),
    "optional.none": lambda _: Maybe(False),
    "optional.ofNonZeroValue": _non_zero,
}
