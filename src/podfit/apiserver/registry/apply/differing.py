"""Two versions of an object without what is the same in both, so that only the rest becomes documents to compare.

A write changes a few fields of an object with a hundred. Structs say quicker than documents what is equal: the same
value is the same object, and equal values of most kinds are told in C. Quantities are compared as they are written:
`1Gi` and `1073741824` are one amount, but two texts.
"""

from collections.abc import Hashable
from functools import cache, lru_cache
from typing import Any, ForwardRef, NamedTuple, TypeAlias, TypeVar, cast, get_args

from msgspec.structs import astuple, replace

from podfit.api.meta.base import Document, Struct
from podfit.api.meta.member import Member
from podfit.api.meta.schema import members
from podfit.api.structural.custom import is_custom
from podfit.core.quantity import Quantity

S = TypeVar("S", bound=Struct)
Items: TypeAlias = tuple[Any, ...]


class _Part(NamedTuple):
    """A member: which of its items' attributes tell them apart, if any do, and whether amounts are inside."""

    attribute: str
    keys: tuple[str, ...]
    amounts: bool


def differing(old: S, new: S) -> tuple[S, S]:
    """Both with what is equal left empty, at every depth; the keys of items stay."""
    left: Document = {}
    right: Document = {}
    declared = _parts(cast(Hashable, type(old)))
    for (name, keys, amounts), before, after in zip(declared, astuple(old), astuple(new), strict=True):
        if before is after or (before == after and not (amounts and _written_otherwise(before, after))):
            continue
        if isinstance(before, Struct) and isinstance(after, Struct):
            before, after = differing(before, after)
        elif keys and _alike(before, after, keys):
            before, after = _items(before, after, keys)
        left[name], right[name] = before, after
    kind = type(old)
    return kind(**left), kind(**right)


def _items(before: Items, after: Items, keys: tuple[str, ...]) -> tuple[Items, Items]:
    """Those that differ, of lists that are alike."""
    left: list[Any] = []
    right: list[Any] = []
    for mine, other in zip(before, after, strict=True):
        if mine is other or (mine == other and not _written_otherwise(mine, other)):
            continue
        named = {key: getattr(mine, key) for key in keys}
        one, two = differing(mine, other)
        left.append(replace(one, **named))
        right.append(replace(two, **named))
    return tuple(left), tuple(right)


def _alike(before: Items, after: Items, keys: tuple[str, ...]) -> bool:
    """Whether both are the same items in the same order, each with keys of its own."""
    if len(before) != len(after):
        return False
    names = [tuple([getattr(item, key) for key in keys]) for item in before]
    return names == [tuple([getattr(item, key) for key in keys]) for item in after] and len(set(names)) == len(names)


def _written_otherwise(before: Any, after: Any) -> bool:
    """Whether amounts that are equal are written in two ways."""
    if before is after:
        return False
    if isinstance(before, Quantity):
        return before.format is not after.format
    if isinstance(before, dict):
        return any(_written_otherwise(value, after[name]) for name, value in before.items())
    if isinstance(before, tuple):
        return any(_written_otherwise(one, other) for one, other in zip(before, after, strict=True))
    if isinstance(before, Struct):
        inside = [part.attribute for part in _parts(cast(Hashable, type(before))) if part.amounts]
        return any(_written_otherwise(getattr(before, field), getattr(after, field)) for field in inside)
    return False


@lru_cache(maxsize=1024)  # declared kinds come and go
def _parts(kind: type[Struct]) -> tuple[_Part, ...]:
    """Of a custom resource only the whole members."""
    if is_custom(kind):
        return tuple(_Part(name, (), False) for name in kind.__struct_fields__)
    known = {member.attribute: member for member in members(kind).values()}
    hints = {name: hint for base in kind.__mro__ for name, hint in vars(base).get("__annotations__", {}).items()}
    return tuple(_Part(name, _keys(known[name]), _amounts(hints[name])) for name in kind.__struct_fields__)


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


def _amounts(hint: object) -> bool:
    """Whether such a value holds a quantity, or a kind that is not known yet."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _holds_amounts(hint)
    return hint is Quantity or isinstance(hint, str | ForwardRef) or any(map(_amounts, get_args(hint)))
