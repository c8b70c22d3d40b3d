"""The cost estimate of CEL calls, from what is known of the sizes of their arguments."""

import math
from collections.abc import Callable
from typing import Protocol

from podfit.api.structural.cel.library import CIDR, IP, QUANTITY, SEMVER
from podfit.api.structural.cel.sizes import PATTERN, WALK, Size, add, multiply, walked
from podfit.api.structural.cel.syntax import Call, Literal, Node
from podfit.api.structural.cel.types import BYTES, STRING, Type

_LIST = 10
_LONGEST_FORMAT = 128
_AUTHORIZED = 350_000
_ONE_STEP = frozenset(
    (
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
        "format.named",
    )
)


class Known(Protocol):
    """What is known of the nodes of an expression."""

    def size(self, node: Node) -> Size: ...

    def item_size(self, node: Node) -> Size:
        """Of the items of a list."""

    def joined(self, node: Call) -> Size:
        """Of a sum of texts or lists, which is noted."""

    def makes(self, node: Node, size: Size) -> None:
        """Notes the size of what a call makes."""

    def kind(self, node: Node) -> Type: ...

    def overloads(self, node: Node) -> tuple[str, ...]: ...


class FunctionCost:
    """What one call costs beyond its arguments."""

    def __init__(self, estimate: "Known", node: Call, name: str, target: Node | None) -> None:
        self._estimate, self._node, self._name, self._target = estimate, node, name, target
        self._args = node.args

    def cost(self) -> int:
        if self._name in _ONE_STEP:
            return 1
        own: Callable[[], int] | None = getattr(self, f"_of_{_NAMES.get(self._name, self._name)}", None)
        if own is not None and (self._target is not None or self._name in _FREE):
            return own()
        return max(map(self._overload, self._estimate.overloads(self._node)))

    def _size(self, index: int) -> Size:
        """Of an argument, of the receiver below 0."""
        return self._estimate.size(self._args[index] if index >= 0 or self._target is None else self._target)

    def _overload(self, overload: str) -> int:  # noqa: C901  (upstream's list of functions)
        match overload:
            case "starts_with_string" | "ends_with_string":
                return walked(self._size(0).most)
            case "string_to_bytes" | "bytes_to_string":
                size = self._size(0)
                wider = (
                    Size(size.least, multiply(size.most, 4))
                    if overload == "string_to_bytes"
                    else Size(size.least // 4, size.most)
                )
                self._estimate.makes(self._node, wider)
                return walked(size.most)
            case "strings_quote":
                size = self._size(0)
                self._estimate.makes(self._node, Size(size.least + 2, add(multiply(size.most, 2), 2)))
                return walked(size.most)
            case "string_format":
                size = self._size(-1)
                self._estimate.makes(self._node, size.plus(self._size(0)))
                return walked(size.most)
            case "in_list":
                return self._size(1).most
            case "matches_string":
                return multiply(walked(add(self._size(-1).most, 1)), walked(self._size(0).most, PATTERN))
            case "contains_string":
                return multiply(walked(self._size(-1).most), walked(self._size(0).most))
            case "add_string" | "add_bytes":
                return walked(self._estimate.joined(self._node).most)
            case "add_list":
                self._estimate.joined(self._node)
                return 1
            case "list_sets_contains_list" | "list_sets_intersects_list":
                return add(multiply(self._size(0).most, self._size(1).most), 1)
            case "list_sets_equivalent_list":
                return add(multiply(2, multiply(self._size(0).most, self._size(1).most)), 1)
        if overload in ("equals", "not_equals") or overload in _COMPARED:
            return self._compared()
        return 1

    def _compared(self) -> int:
        kind = self._estimate.kind(self._args[0])
        if self._name == "_==_" and kind.name in (IP, CIDR, QUANTITY, SEMVER):
            return 1
        return walked(min(self._size(0).most, self._size(1).most))

    # ------------------------------------------------------------ by name

    def _of_traversal(self) -> int:
        assert self._target is not None
        kind, size = self._estimate.kind(self._target), self._size(-1)
        if kind.name != "list":
            return walked(size.most)
        element_cost = 1
        if kind.parts[0] in (STRING, BYTES):
            element_cost = add(element_cost, walked(self._estimate.item_size(self._target).most))
        return multiply(size.most, element_cost)

    def _of_walk(self) -> int:
        size = self._size(0) if self._target is None else self._size(-1)
        self._estimate.makes(self._node, size)
        return walked(size.most)

    def _of_replace(self) -> int:
        size, old, new = self._size(-1), self._size(0), self._size(1)
        if old.least == 0:
            times, kept = add(size.most, 1), size.most
        elif new.most <= old.least:
            times, kept = 0, size.most
        else:
            times, kept = math.ceil(size.most / old.least), 0
        if old.most == 0:
            least = add(multiply(add(size.least, 1), new.least), size.least)
        elif old.most <= new.least:
            least = size.least
        else:
            least = multiply(math.ceil(size.least / old.most), new.least)
        self._estimate.makes(self._node, Size(least, add(multiply(times, new.most), kept)))
        return walked(size.most, 2 * WALK)

    def _of_split(self) -> int:
        size, most = self._size(-1), self._size(-1).most
        if len(self._args) > 1 and isinstance(limit := self._args[1], Literal):
            most = limit.value % 2**64
        self._estimate.makes(self._node, Size(0, most))
        return walked(size.most, 2 * WALK)

    def _of_join(self) -> int:
        assert self._target is not None
        count = self._size(-1)
        size = count.times(self._estimate.item_size(self._target))
        if self._args:
            between = Size(max(0, count.least - 1), max(0, count.most - 1))
            size = size.plus(self._size(0).times(between))
        self._estimate.makes(self._node, size)
        return walked(size.most)

    def _of_find(self) -> int:
        size = self._size(-1)
        self._estimate.makes(self._node, Size(0, size.most))
        return multiply(walked(add(size.most, 1)), walked(self._size(0).most, PATTERN))

    def _of_canonical(self) -> int:
        return walked(self._size(0).most, 2 * WALK)

    def _of_read(self) -> int:
        """Of a text; the address of a network is at hand."""
        return 1 if self._target is not None else walked(self._size(0).most)

    def _of_contains_network(self) -> int:
        cost = walked(32) + (walked(16) + 1 if self._name == "containsCIDR" else 0)
        if self._estimate.overloads(self._node)[0].endswith("_string"):
            cost = add(cost, walked(self._size(0).most))
        return cost

    def _of_validate(self) -> int:
        return walked(walked(self._size(0).most), _LONGEST_FORMAT * PATTERN)

    def _of_check(self) -> int:
        return _AUTHORIZED

    def _of_selector(self) -> int:
        most = self._size(0).most
        return add(_LIST, add(walked(most), walked(walked(most, 0.5), 50)))


_READ = ("quantity", "isQuantity", "semver", "isSemver", "cidr", "isCIDR", "ip", "isIP")
_FREE = ("url", "ip.isCanonical", *_READ)
_NAMES = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), "traversal"),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), "walk"),
    "find": "find",
    "findAll": "find",
    "containsIP": "contains_network",
    "containsCIDR": "contains_network",
    **dict.fromkeys(_READ, "read"),
    "ip.isCanonical": "canonical",
    "fieldSelector": "selector",
    "labelSelector": "selector",
}
_COMPARED = frozenset(
    f"{name}_{kind}" for name in ("less", "less_equals", "greater", "greater_equals") for kind in ("string", "bytes")
)
