"""Compiles CEL expressions to Python functions that count their cost and stop at the limit."""

import math
from collections.abc import Callable
from typing import Any

from podfit.api.structural.cel.check import Checked
from podfit.api.structural.cel.functions import FUNCTIONS, conversion
from podfit.api.structural.cel.macros import FOLDS
from podfit.api.structural.cel.meter import Failure, Meter, contains, equal
from podfit.api.structural.cel.operators import OPERATORS
from podfit.api.structural.cel.prices import PRICES
from podfit.api.structural.cel.syntax import Call, Entries, Fold, Ident, Items, Literal, Node, Select
from podfit.api.structural.cel.values import Fields, Kind, Maybe, Named, Rows, size_of

Run = Callable[[Meter], Any]
_KINDS = {
    name: Kind(name)
    for name in ("bool", "bytes", "double", "int", "string", "uint", "list", "map", "type", "null_type")
}
_LIST, _MAP = 10, 30
_NO_OVERLOAD = "no such overload"


def made(checked: Checked) -> Run:
    return _Maker(checked).of(checked.tree.root)


class _Maker:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._names: dict[str, str] = {}
        """Of macros' variables, each by a name that no other has."""

    def of(self, node: Node) -> Run:
        match node:
            case Literal():
                value = node.value
                return lambda meter: value
            case Ident():
                return _ident(self._names.get(node.name, node.name))
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Items():
                return _items([self.of(item) for item in node.items])
            case Entries():
                return _entries([(self.of(key), self.of(value)) for key, value in node.entries])
            case Fold():
                return self._fold(node)
        raise TypeError(type(node))

    def _fold(self, node: Fold) -> Run:
        over, around = self.of(node.over), self._names
        names = tuple(f"{name}#{node.number}" for name in node.names)
        self._names = around | dict(zip(node.names, names, strict=True))
        made = FOLDS[node.macro](over, names, [self.of(arg) for arg in node.args])
        self._names = around
        return made

    def _select(self, node: Select) -> Run:
        operand, name = self.of(node.operand), node.member
        if node.tested:
            return lambda meter: _has(operand(meter), name)
        if node.optional:
            return lambda meter: _maybe(operand(meter), name, meter)

        def select(meter: Meter) -> Any:
            value = operand(meter)
            meter.cost += 1
            return member(value, name)

        return select

    def _call(self, node: Call) -> Run:
        name = self._checked.functions.get(node.number, node.name)
        parts = [] if node.target is None or name != node.name else [self.of(node.target)]
        parts += [self.of(arg) for arg in node.args]
        match name:
            case "_&&_":
                return _both(*parts, ends=False)
            case "_||_":
                return _both(*parts, ends=True)
            case "_?_:_":
                return _choice(*parts)
            case "_==_":
                return _equality(*parts, wanted=True)
            case "_!=_":
                return _equality(*parts, wanted=False)
            case "_[_]" | "_[?_]":
                return _index(*parts, optional=name == "_[?_]")
            case "@in":
                return _within(*parts)
        ids = self._checked.calls[node.number]
        price = PRICES.get(name) or PRICES.get(ids[0] if len(ids) == 1 else "")
        function = OPERATORS.get(name) or FUNCTIONS.get(name) or conversion(name)
        return _applied(function, parts, price)


def _ident(name: str) -> Run:
    kind = _KINDS.get(name)

    def ident(meter: Meter) -> Any:
        meter.cost += 1
        variables = meter.variables
        if name in variables:
            return variables[name]
        if kind is None:
            raise Failure(f"no such attribute(s): {name}")
        return kind

    return ident


def member(value: Any, name: str) -> Any:
    if isinstance(value, Fields):
        if not value.has(name):
            raise Failure(f"no such key: {name}")
        return value.get(name)
    if isinstance(value, dict | Named):
        if name not in value:
            raise Failure(f"no such key: {name}")
        return value[name]
    if isinstance(value, Maybe):
        found = value.given and _has(value.value, name)
        return Maybe(True, member(value.value, name)) if found else Maybe(False)
    raise Failure(_NO_OVERLOAD)


def _has(value: Any, name: str) -> bool:
    if isinstance(value, Fields):
        return value.has(name)
    if isinstance(value, dict | Named):
        return name in value
    if isinstance(value, Maybe):
        return value.given and _has(value.value, name)
    raise Failure(_NO_OVERLOAD)


def _maybe(value: Any, name: str, meter: Meter) -> Maybe:
    meter.cost += 1
    if isinstance(value, Maybe):
        found: Maybe = member(value, name)
        return found
    return Maybe(True, member(value, name)) if _has(value, name) else Maybe(False)


def _items(parts: list[Run]) -> Run:
    def items(meter: Meter) -> Any:
        meter.charge(_LIST)
        return [part(meter) for part in parts]

    return items


def _entries(parts: list[tuple[Run, Run]]) -> Run:
    def entries(meter: Meter) -> Any:
        meter.charge(_MAP)
        found: dict[Any, Any] = {}
        for key, value in parts:
            name = key(meter)
            if not isinstance(name, str | int | bool):
                raise Failure(f"unsupported key type: {name!r:.64}")
            found[name] = value(meter)
        return found

    return entries


def _both(one: Run, other: Run, *, ends: bool) -> Run:
    """`||` when `ends` is true, `&&` when not: the side that decides outweighs an error of the other."""

    def both(meter: Meter) -> Any:
        try:
            if one(meter) is ends:
                return ends
            failed = None
        except Failure as error:
            failed = error
        found = other(meter)
        if found is ends:
            return ends
        if failed is not None:
            raise failed
        if not isinstance(found, bool):
            raise Failure(_NO_OVERLOAD)
        return not ends

    return both


def _choice(asked: Run, chosen: Run, otherwise: Run) -> Run:
    def choice(meter: Meter) -> Any:
        match asked(meter):
            case True:
                return chosen(meter)
            case False:
                return otherwise(meter)
        raise Failure(_NO_OVERLOAD)

    return choice


def _equality(one: Run, other: Run, *, wanted: bool) -> Run:
    def equality(meter: Meter) -> Any:
        mine, theirs = one(meter), other(meter)
        if mine.__class__ is int and theirs.__class__ is int:
            meter.cost += 1
            return (mine == theirs) is wanted
        meter.charge(math.ceil(min(size_of(mine), size_of(theirs)) * 0.1))
        return equal(mine, theirs, meter) is wanted

    return equality


def _index(on: Run, at: Run, *, optional: bool) -> Run:
    def index(meter: Meter) -> Any:
        value, key = on(meter), at(meter)
        meter.cost += 1
        if isinstance(value, Maybe):
            if not value.given:
                return value
            value = value.value
        try:
            found = _at(value, key)
        except Failure:
            if optional:
                return Maybe(False)
            raise
        return Maybe(True, found) if optional else found

    return index


def _at(value: Any, key: Any) -> Any:
    if isinstance(value, list | tuple | Rows):
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if not isinstance(key, int) or isinstance(key, bool):
            raise Failure(f"unsupported index type '{type(key).__name__}' in list")
        if not 0 <= key < len(value):
            raise Failure(f"index out of bounds: {key}")
        return value[key]
    if isinstance(value, dict | Named):
        if key not in value:
            raise Failure(f"no such key: {key}")
        return value[key]
    raise Failure(_NO_OVERLOAD)


def _within(item: Run, over: Run) -> Run:
    def within(meter: Meter) -> bool:
        wanted, where = item(meter), over(meter)
        if isinstance(where, dict | Named):
            meter.cost += 1
            return isinstance(wanted, str | int | bool) and wanted in where
        if not isinstance(where, list | tuple | Rows):
            raise Failure(_NO_OVERLOAD)
        meter.charge(len(where))
        return contains(where, wanted, meter)

    return within


def _applied(function: Callable[..., Any], parts: list[Run], price: Callable[..., int] | None) -> Run:
    if len(parts) == 2 and price is None:
        one, other = parts

        def binary(meter: Meter) -> Any:
            mine, theirs = one(meter), other(meter)
            meter.cost += 1
            return function(meter, mine, theirs)

        return binary

    def applied(meter: Meter) -> Any:
        values = [part(meter) for part in parts]
        meter.charge(price(*values) if price is not None else 1)
        try:
            return function(meter, *values)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
            raise Failure(_said(error)) from None

    return applied


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError | ArithmeticError) else _NO_OVERLOAD
