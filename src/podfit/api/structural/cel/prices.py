"""Runtime costs of CEL calls that cost other than 1, by upstream's numbers."""

import math
from collections.abc import Callable
from typing import Any

from podfit.api.structural.cel.values import Fields, size_of

_WALK, _PATTERN = 0.1, 0.25


def _walk(*values: Any) -> int:
    return math.ceil(size_of(values[0]) * _WALK)


def _twice(*values: Any) -> int:
    return math.ceil(size_of(values[0]) * 2 * _WALK)


def _pattern(text: Any, pattern: Any, *_: Any) -> int:
    return math.ceil((1 + size_of(text)) * _WALK) * math.ceil(size_of(pattern) * _PATTERN)


def _sum(one: Any, other: Any) -> int:
    return math.ceil((size_of(one) + size_of(other)) * _WALK)


def _less(one: Any, other: Any) -> int:
    return math.ceil(min(size_of(one), size_of(other)) * _WALK)


def _contains(text: Any, part: Any) -> int:
    return math.ceil(size_of(text) * _WALK) * math.ceil(size_of(part) * _WALK)


def _join(items: Any, between: Any = "") -> int:
    size = sum(len(item) for item in items if isinstance(item, str)) + len(between) * max(0, len(items) - 1)
    return math.ceil(size * 2 * _WALK)


def traversed(value: Any, left: int = 10_000_000) -> int:
    """Of a list that is walked once; `left` ends it for values that refer to one part many times."""
    if isinstance(value, str | bytes):
        return int(len(value) * _WALK)
    if isinstance(value, Fields):
        return sum(traversed(value.get(name), left) + len(name) // 10 for name in value.names())
    if size_of(value) == 1 and not hasattr(value, "__iter__"):
        return 1
    total = 0
    for part in value:
        total += traversed(part, left - total)
        if total > left:
            break
    return total


def _traversed(value: Any, *_: Any) -> int:
    return traversed(value)


def _sets(one: Any, other: Any) -> int:
    return size_of(one) * size_of(other) + 1


def _network(network: Any, other: Any) -> int:
    cost = math.ceil(2 * size_of(network) * _WALK)
    return cost + (_walk(other) if isinstance(other, str) else 0)


def _inner_network(network: Any, other: Any) -> int:
    return _network(network, other) + _walk(network) + 1


def _ip(value: Any) -> int:
    return _walk(value) if isinstance(value, str) else 1


def _validated(_: Any, text: Any) -> int:
    return math.ceil((1 + size_of(text)) * _WALK) * math.ceil(128 * _PATTERN)


PRICES: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversed),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _walk),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _walk),
    **dict.fromkeys(("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"), _walk),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _twice),
    "join": _join,
    "find": _pattern,
    "findAll": _pattern,
    "matches_string": _pattern,
    "matches": _pattern,
    "contains_string": _contains,
    "ip": _ip,
    "add_string": _sum,
    "add_bytes": _sum,
    "containsIP": _network,
    "containsCIDR": _inner_network,
    "sets.contains": _sets,
    "sets.intersects": _sets,
    "sets.equivalent": lambda one, other: 2 * size_of(one) * size_of(other) + 1,
    "validate": _validated,
    **{
        f"{name}_{kind}": _less
        for name in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
}
"""By the name of the function, or of the one overload that it can be."""
