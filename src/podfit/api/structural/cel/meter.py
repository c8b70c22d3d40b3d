"""The CEL runtime cost meter of one evaluation, and equality, which costs what it compares."""

from typing import Any

from podfit.api.structural.cel.syntax import UInt
from podfit.api.structural.cel.values import Fields, Maybe, Named, Rows

MOST_PARTS = 500_000
"""Of lists, maps and texts that one evaluation may copy or compare beyond what upstream counts."""


class Failure(Exception):
    """The expression comes to no value, in upstream's words."""


class OverLimit(Exception):
    """The evaluation was ended: it costs more than it may."""


class Meter:
    """`variables` by name. A cost is charged before what it is for is done."""

    __slots__ = ("cost", "limit", "parts", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables, self.limit = variables, limit
        self.cost = self.parts = 0

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise OverLimit

    def copies(self, parts: int) -> None:
        self.parts += parts
        if self.parts > MOST_PARTS:
            raise OverLimit


def equal(one: Any, other: Any, meter: Meter) -> bool:
    """As CEL has it: numbers of any sort are compared by value, other kinds never with each other."""
    plain = one.__class__
    if plain is other.__class__ and plain in (str, int, bool, float, bytes):
        return bool(one == other)
    meter.copies(1)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float | UInt) and isinstance(other, int | float | UInt):
        return bool(one == other)
    if isinstance(one, list | tuple | Rows) and isinstance(other, list | tuple | Rows):
        return _lists(one, other, meter)
    if isinstance(one, Fields | dict | Named) and isinstance(other, Fields | dict | Named):
        return _maps(one, other, meter)
    if isinstance(one, Maybe) and isinstance(other, Maybe):
        return one.given is other.given and (not one.given or equal(one.value, other.value, meter))
    return plain is other.__class__ and bool(one == other)


def _lists(one: Any, other: Any, meter: Meter) -> bool:
    if len(one) != len(other):
        return False
    meter.copies(len(one))
    if isinstance(one, Rows) and isinstance(other, Rows) and (one.unordered or other.unordered):
        return one.fingerprint() == other.fingerprint()
    unordered = next((rows for rows in (one, other) if isinstance(rows, Rows) and rows.unordered), None)
    if unordered is not None:
        rest = other if unordered is one else one
        return all(contains(rest, item, meter) for item in unordered) and all(
            contains(unordered, item, meter) for item in rest
        )
    return all(equal(mine, theirs, meter) for mine, theirs in zip(one, other, strict=True))


def contains(items: Any, wanted: Any, meter: Meter) -> bool:
    for item in items:
        meter.copies(1)
        if equal(item, wanted, meter):
            return True
    return False


def _maps(one: Any, other: Any, meter: Meter) -> bool:
    mine, theirs = _parts(one), _parts(other)
    if len(mine) != len(theirs):
        return False
    meter.copies(len(mine))
    return all(name in theirs for name in mine) and all(
        equal(_part(one, name), _part(other, name), meter) for name in mine
    )


def _parts(value: Any) -> Any:
    return set(value.names()) if isinstance(value, Fields) else value


def _part(value: Any, name: Any) -> Any:
    return value.get(name) if isinstance(value, Fields) else value[name]
