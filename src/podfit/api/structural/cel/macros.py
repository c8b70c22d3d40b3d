"""CEL comprehension macros (`all`, `exists`, `map`, `filter`, …). Every item is charged before it is evaluated."""

from collections.abc import Callable, Iterator
from typing import Any

from podfit.api.structural.cel.meter import Failure, Meter
from podfit.api.structural.cel.values import Named, Rows

Run = Callable[[Meter], Any]
_NO_OVERLOAD = "no such overload"


class _Each:
    """The items, with the macro's variables set to them. Names are of one macro alone, so nothing is put back."""

    def __init__(self, over: Run, names: tuple[str, ...]) -> None:
        self._over, self._names = over, names

    def __call__(self, meter: Meter) -> Iterator[Any]:
        items, variables, first = self._over(meter), meter.variables, self._names[0]
        if not isinstance(items, list | tuple | Rows | dict | Named):
            raise Failure(_NO_OVERLOAD)
        if len(self._names) == 1:
            for item in items:
                variables[first] = item
                yield item
            return
        mapping, second = isinstance(items, dict | Named), self._names[1]
        for place, item in enumerate(items):
            variables[first] = item if mapping else place
            variables[second] = items[item] if mapping else item
            yield variables[first]


def _quantified(over: Run, names: tuple[str, ...], args: list[Run], *, ends: bool) -> Run:
    """`exists` when `ends` is true, `all` when not."""
    elements, [asked], step = _Each(over, names), args, 4 if ends else 3

    def quantified(meter: Meter) -> bool:
        failed = None
        for _ in elements(meter):
            meter.charge(step)
            try:
                found = asked(meter)
            except Failure as error:
                failed = error
                continue
            if found is ends:
                meter.cost += step
                return bool(ends)
            if not isinstance(found, bool):
                failed = Failure(_NO_OVERLOAD)
        meter.charge(1)
        if failed is not None:
            raise failed
        return not ends

    return quantified


def _exists_one(over: Run, names: tuple[str, ...], args: list[Run]) -> Run:
    elements, [asked] = _Each(over, names), args

    def exists_one(meter: Meter) -> bool:
        count = 0
        for _ in elements(meter):
            found = _asked(asked(meter))
            meter.charge(2 if found else 1)
            count += found
        meter.charge(2)
        return count == 1

    return exists_one


def _asked(verdict: Any) -> bool:
    if not isinstance(verdict, bool):
        raise Failure(_NO_OVERLOAD)
    return verdict


def _filter(over: Run, names: tuple[str, ...], args: list[Run]) -> Run:
    elements, [asked] = _Each(over, names), args

    def filtered(meter: Meter) -> list[Any]:
        meter.charge(11)
        found = []
        for item in elements(meter):
            wanted = _asked(asked(meter))
            meter.charge(13 if wanted else 1)
            if wanted:
                found.append(item)
        return found

    return filtered


def _map(over: Run, names: tuple[str, ...], args: list[Run]) -> Run:
    elements, made = _Each(over, names), args[-1]
    asked = args[0] if len(args) == 2 else None

    def mapped(meter: Meter) -> list[Any]:
        meter.charge(11)
        found = []
        for _ in elements(meter):
            if asked is not None and not _asked(asked(meter)):
                meter.charge(1)
                continue
            meter.charge(12)
            found.append(made(meter))
        return found

    return mapped


def _map_of(over: Run, names: tuple[str, ...], args: list[Run]) -> Run:
    elements, made = _Each(over, names), args[-1]
    asked = args[0] if len(args) == 2 else None

    def mapped(meter: Meter) -> dict[Any, Any]:
        meter.charge(31)
        found = {}
        for key in elements(meter):
            if asked is not None and not _asked(asked(meter)):
                meter.charge(1)
                continue
            meter.charge(2)
            found[key] = made(meter)
        return found

    return mapped


FOLDS: dict[str, Callable[[Run, tuple[str, ...], list[Run]], Run]] = {
    "all": lambda over, names, args: _quantified(over, names, args, ends=False),
    "exists": lambda over, names, args: _quantified(over, names, args, ends=True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _map_of,
}
