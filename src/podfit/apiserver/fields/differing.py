"""Two versions of an object without what is the same in both, so that only the rest becomes documents to compare.

A write changes a few fields of an object with a hundred. Structs say quicker than documents what is equal: the same
value is the same object, and equal values of most kinds are told in C. Quantities are compared as they are written:
`1Gi` and `1073741824` are one amount, but two texts.
"""

from collections.abc import Hashable, Iterable
from functools import cache, lru_cache
from typing import Any, ForwardRef, NamedTuple, cast, get_args

from msgspec.structs import replace

from podfit.api.base import Struct
from podfit.api.custom import is_custom
from podfit.api.filling import empties
from podfit.api.member import Member
from podfit.api.schema import members
from podfit.core.quantity import Quantity


class _Part(NamedTuple):
    """A member: what it holds when it is not given, which of its items' attributes tell them apart, if any do, and
    whether amounts are inside."""

    attribute: str
    empty: Any
    keys: tuple[str, ...]
    amounts: bool


def differing(old: Any, new: Any) -> tuple[Any, Any]:
    """Both with what is equal left empty, at every depth; the keys of items stay."""
    mine: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for part in _parts(cast(Hashable, type(old))):
        before, after = getattr(old, part.attribute), getattr(new, part.attribute)
        if before is after or (before == after and not (part.amounts and _written_otherwise(before, after))):
            if after is not part.empty:
                mine[part.attribute] = others[part.attribute] = part.empty
        elif isinstance(before, Struct) and isinstance(after, Struct):
            mine[part.attribute], others[part.attribute] = differing(before, after)
        elif part.keys and _alike(before, after, part.keys):
            pairs = zip(before, after, strict=True)
            mine[part.attribute], others[part.attribute] = _items(pairs, part)
    return (replace(old, **mine), replace(new, **others)) if mine else (old, new)


def _items(pairs: Iterable[tuple[Any, Any]], part: _Part) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    left: list[Any] = []
    right: list[Any] = []
    for before, after in pairs:
        if before is after or (before == after and not (part.amounts and _written_otherwise(before, after))):
            continue
        mine, other = differing(before, after)
        left.append(replace(mine, **{key: getattr(before, key) for key in part.keys}))
        right.append(replace(other, **{key: getattr(after, key) for key in part.keys}))
    return tuple(left), tuple(right)


def _alike(before: tuple[Any, ...], after: tuple[Any, ...], keys: tuple[str, ...]) -> bool:
    """Whether both are the same items in the same order, each with keys of its own."""
    if len(before) != len(after):
        return False
    names = [tuple([getattr(each, key) for key in keys]) for each in before]
    return names == [tuple([getattr(each, key) for key in keys]) for each in after] and len(set(names)) == len(names)


def _written_otherwise(before: Any, after: Any) -> bool:
    """Whether amounts that are equal are written in two ways."""
    if before is after:
        return False
    if isinstance(before, Quantity):
        return before.format is not after.format
    if isinstance(before, dict):
        return any(_written_otherwise(each, after[name]) for name, each in before.items())
    if isinstance(before, tuple):
        return any(_written_otherwise(one, other) for one, other in zip(before, after, strict=True))
    if isinstance(before, Struct):
        inside = [part.attribute for part in _parts(cast(Hashable, type(before))) if part.amounts]
        return any(_written_otherwise(getattr(before, each), getattr(after, each)) for each in inside)
    return False


@lru_cache(maxsize=1024)  # declared kinds come and go
def _parts(kind: type[Struct]) -> tuple[_Part, ...]:
    """Of a custom resource only the whole members."""
    given = empties(kind)
    if is_custom(kind):
        return tuple(_Part(name, empty, (), False) for name, empty in given.items())
    known = {member.attribute: member for member in members(kind).values()}
    hints = {name: hint for base in kind.__mro__ for name, hint in vars(base).get("__annotations__", {}).items()}
    return tuple(_Part(name, empty, _keys(known[name]), _amounts(hints[name])) for name, empty in given.items())


def _keys(member: Member) -> tuple[str, ...]:
    """The attributes that tell items apart where each is owned by itself."""
    if member.listing.atomic or not member.listing.keys or not isinstance(member.item, type):
        return ()
    inside = members(member.item)
    return tuple(inside[name].attribute for name in member.listing.keys)


@cache
def _holds_amounts(kind: type[Struct]) -> bool:
    """As the annotations say it, unevaluated: most kinds of an object are asked for at its first write."""
    return any(_amounts(hint) for base in kind.__mro__ for hint in vars(base).get("__annotations__", {}).values())


def _amounts(hint: Any) -> bool:
    """Whether such a value holds a quantity, or a kind that is not known yet."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _holds_amounts(hint)
    return hint is Quantity or isinstance(hint, str | ForwardRef) or any(map(_amounts, get_args(hint)))
