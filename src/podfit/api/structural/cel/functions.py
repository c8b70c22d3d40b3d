"""Kubernetes' CEL libraries: lists, strings, patterns, sets, quantities, addresses, URLs, optional old values.

A function takes the receiver of a method first. `ARITY` says of every function that a rule may call how many values it
takes, the receiver included; a rule that calls another is refused when its definition is made.
"""

import ipaddress
import operator
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import re2
from celpy import celtypes
from celpy.evaluation import base_functions

from podfit.core.quantity import Quantity

Bool, Double, Int, List, Map, Text = (
    celtypes.BoolType, celtypes.DoubleType, celtypes.IntType, celtypes.ListType, celtypes.MapType, celtypes.StringType,
)  # fmt: skip
_NUMBERS = (celtypes.IntType, celtypes.UintType, celtypes.DoubleType)


class Namespace:
    """What stands before the dot in `sets.contains(…)`."""

    def __init__(self, name: str) -> None:
        self.name = name


class Optional:
    """`oldSelf` of a rule that is asked about new values, too."""

    def __init__(self, value: Any, *, given: bool) -> None:
        self.value, self.given = value, given


def _compared(name: str) -> Callable[[Any, Any], Any]:
    """Whole numbers and fractions are comparable with each other."""
    plain, base = getattr(operator, name), base_functions[_SIGNS[name]]

    def compare(one: Any, other: Any) -> Any:
        if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS) and type(one) is not type(other):
            return Bool(plain(float(one), float(other)))
        if isinstance(one, Quantity | _Address) or isinstance(other, Quantity | _Address):
            return Bool(plain(one, other))
        return base(one, other)

    return compare


_SIGNS = {"lt": "_<_", "le": "_<=_", "gt": "_>_", "ge": "_>=_", "eq": "_==_", "ne": "_!=_"}
_URL = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?:[^@/?#\s]*@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/?#\s]*)"
    r"(?::(?P<port>\d*))?)?|(?=/))(?P<path>[^?#\s]*)(?:\?(?P<query>[^#\s]*))?(?:#\S*)?"
)


class Url(msgspec.Struct, frozen=True):
    text: str
    scheme: str
    host: str
    port: str
    path: str
    query: str

    def __str__(self) -> str:
        return self.text


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address | ipaddress.IPv4Network | ipaddress.IPv6Network | Url


def _is(read: Callable[[str], Any]) -> Callable[[Any], Any]:
    def check(text: Any) -> Any:
        try:
            read(str(text))
        except ValueError:
            return Bool(False)
        return Bool(True)

    return check


# ---------------------------------------------------------------- lists and sets


def _is_sorted(items: Any) -> Any:
    return Bool(all(one <= other for one, other in pairwise(items)))


def _sum(items: Any) -> Any:
    total = items[0] if items else Int(0)
    for each in items[1:]:
        total = total + each
    return total


def _index_of(where: Any, what: Any, start: Any = 0) -> Any:
    if isinstance(where, str):
        return Int(where.find(what, int(start)))
    return Int(next((index for index, each in enumerate(where) if each == what), -1))


def _last_index_of(where: Any, what: Any, end: Any = None) -> Any:
    if isinstance(where, str):
        return Int(where.rfind(what) if end is None else where.rfind(what, 0, int(end) + len(what)))
    return Int(max((index for index, each in enumerate(where) if each == what), default=-1))


def _within(one: Any, other: Any) -> bool:
    """Whether everything of `other` is in `one`."""
    return all(any(each == mine for mine in one) for each in other)


def _contains(on: Any, *values: Any) -> Any:
    """Of a text, of a list, or `sets.contains`."""
    if isinstance(on, Namespace):
        return Bool(_within(values[0], values[1]))
    return base_functions["contains"](on, *values)


def _equivalent(_: Any, one: Any, other: Any) -> Any:
    return Bool(_within(one, other) and _within(other, one))


def _intersects(_: Any, one: Any, other: Any) -> Any:
    return Bool(any(each == mine for mine in one for each in other))


# ---------------------------------------------------------------- texts


def _slice(text: Any, start: Any, end: Any = None) -> Any:
    first, last = int(start), len(text) if end is None else int(end)
    if not 0 <= first <= last <= len(text):
        raise ValueError(f"index out of range: {first}, {last}")
    return Text(text[first:last])


def _split(text: Any, by: Any, most: Any = -1) -> Any:
    if int(most) == 0:
        return List([])
    parts = text.split(by, int(most) - 1 if int(most) > 0 else -1) if by else list(text)
    return List([Text(each) for each in parts])


def _replace(text: Any, old: Any, new: Any, most: Any = -1) -> Any:
    return Text(text.replace(old, new, int(most)))


def _lower(text: Any) -> Any:
    return Text("".join(each.lower() if each.isascii() else each for each in text))


def _upper(text: Any) -> Any:
    return Text("".join(each.upper() if each.isascii() else each for each in text))


def _find(text: Any, pattern: Any) -> Any:
    found = re2.search(str(pattern), str(text))
    return Text(found[0] if found else "")


def _find_all(text: Any, pattern: Any, most: Any = -1) -> Any:
    found = [Text(each[0]) for each in re2.finditer(str(pattern), str(text))]
    return List(found if int(most) < 0 else found[: int(most)])


def _matches(text: Any, pattern: Any) -> Any:
    return Bool(re2.search(str(pattern), str(text)) is not None)


# ---------------------------------------------------------------- quantities, addresses, URLs


def _quantity(text: Any) -> Quantity:
    return Quantity.parse(str(text))


def _amount(value: Any) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity.parse(str(value))


def _whole(value: Quantity) -> Any:
    if value.nano % 10**9:
        raise ValueError("cannot convert value to integer")
    return Int(value.nano // 10**9)


def _network(text: Any) -> Any:
    if "/" not in str(text):
        raise ValueError(f"network address parse error: {text}")
    return ipaddress.ip_network(str(text), strict=False)


def _contains_ip(network: Any, address: Any) -> Any:
    found = ipaddress.ip_address(str(address))
    return Bool(found.version == network.version and found in network)


def _contains_cidr(network: Any, other: Any) -> Any:
    inner = _network(str(other))
    return Bool(inner.version == network.version and inner.subnet_of(network))


def _url(text: Any) -> "Url":
    parts = _URL.fullmatch(str(text))
    if parts is None:
        raise ValueError(f"URL parse error during conversion from string: {text}")
    return Url(str(text), *(parts[name] or "" for name in ("scheme", "host", "port", "path", "query")))


def _query(url: "Url") -> Any:
    found: dict[str, list[Any]] = {}
    for part in filter(None, url.query.split("&")):
        name, _, value = part.partition("=")
        found.setdefault(name, []).append(Text(value))
    return Map({Text(name): List(values) for name, values in found.items()})


def _host(url: "Url") -> Any:
    return Text(f"{url.host}:{url.port}" if url.port else url.host)


def _string(value: Any) -> Any:
    return Text(str(value)) if isinstance(value, Quantity | _Address) else base_functions["string"](value)


# ---------------------------------------------------------------- the tables

_OWN: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "isSorted": (_is_sorted, (1,)), "sum": (_sum, (1,)), "min": (min, (1,)),
    "max": (max, (1,)), "indexOf": (_index_of, (2, 3)), "lastIndexOf": (_last_index_of, (2, 3)),
    "contains": (_contains, (2, 3)), "charAt": (lambda text, at: Text(text[int(at) : int(at) + 1]), (2,)),
    "lowerAscii": (_lower, (1,)), "upperAscii": (_upper, (1,)), "replace": (_replace, (3, 4)),
    "split": (_split, (2, 3)), "substring": (_slice, (2, 3)), "trim": (lambda text: Text(text.strip()), (1,)),
    "join": (lambda items, by="": Text(str(by).join(items)), (1, 2)), "reverse": (lambda text: Text(text[::-1]), (1,)),
    "find": (_find, (2,)), "findAll": (_find_all, (2, 3)), "matches": (_matches, (2,)), "string": (_string, (1,)),
    "quantity": (_quantity, (1,)), "isQuantity": (_is(_quantity), (1,)),
    "isGreaterThan": (lambda one, other: Bool(one > other), (2,)),
    "isLessThan": (lambda one, other: Bool(one < other), (2,)),
    "compareTo": (lambda one, other: Int((one > other) - (one < other)), (2,)),
    "add": (lambda one, other: one + _amount(other), (2,)), "sub": (lambda one, other: one - _amount(other), (2,)),
    "sign": (lambda value: Int((value.nano > 0) - (value.nano < 0)), (1,)),
    "isInteger": (lambda value: Bool(value.nano % 10**9 == 0), (1,)), "asInteger": (_whole, (1,)),
    "asApproximateFloat": (lambda value: Double(value.nano / 1e9), (1,)),
    "ip": (lambda value: getattr(value, "network_address", None) or ipaddress.ip_address(str(value)), (1,)),
    "isIP": (_is(ipaddress.ip_address), (1,)), "cidr": (_network, (1,)), "isCIDR": (_is(_network), (1,)),
    "family": (lambda address: Int(address.version), (1,)),
    "isLoopback": (lambda address: Bool(address.is_loopback), (1,)),
    "isUnspecified": (lambda address: Bool(address.is_unspecified), (1,)),
    "isLinkLocalMulticast": (
        lambda address: Bool(address.is_multicast and address in ipaddress.ip_network("224.0.0.0/24")), (1,)),
    "isLinkLocalUnicast": (lambda address: Bool(address.is_link_local), (1,)),
    "isGlobalUnicast": (
        lambda address: Bool(not (address.is_multicast or address.is_loopback or address.is_link_local
                                  or address.is_unspecified)), (1,)),
    "containsIP": (_contains_ip, (2,)), "containsCIDR": (_contains_cidr, (2,)),
    "prefixLength": (lambda network: Int(network.prefixlen), (1,)),
    "masked": (lambda network: network, (1,)),
    "url": (_url, (1,)), "isURL": (_is(_url), (1,)), "getScheme": (lambda url: Text(url.scheme), (1,)),
    "getHost": (_host, (1,)), "getHostname": (lambda url: Text(url.host), (1,)),
    "getPort": (lambda url: Text(url.port), (1,)), "getEscapedPath": (lambda url: Text(url.path), (1,)),
    "getQuery": (_query, (1,)),
}  # fmt: skip
_STANDARD = {
    "size": (1,), "type": (1,), "endsWith": (2,), "startsWith": (2,), "has": (1,), "bool": (1,), "bytes": (1,),
    "double": (1,), "duration": (1,), "int": (1,), "timestamp": (1,), "uint": (1,), "dyn": (1,),
    **dict.fromkeys(("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getMonth", "getHours",
                     "getMilliseconds", "getMinutes", "getSeconds"), (1, 2)),
}  # fmt: skip
OPTIONAL: dict[str, Callable[..., Any]] = {
    "hasValue": lambda old: Bool(old.given), "value": lambda old: old.value,
    "orValue": lambda old, other: old.value if old.given else other,
}  # fmt: skip
NAMESPACES = {"sets": ("contains", "equivalent", "intersects")}
ARITY: dict[str, tuple[int, ...]] = {name: counts for name, (_, counts) in _OWN.items()} | _STANDARD
FUNCTIONS: dict[str, Any] = {
    **{name: function for name, (function, _) in _OWN.items()}, **OPTIONAL, "equivalent": _equivalent,
    "intersects": _intersects, "dyn": lambda value: value, **{sign: _compared(name) for name, sign in _SIGNS.items()},
}  # fmt: skip
