"""Equality of values, which is told in C; of amounts it does not say how they are written.

`1Gi` and `1073741824` are one amount, but two texts. All else that is equal is written alike.
"""

from functools import cache, lru_cache
from typing import Any, ForwardRef, Generic, TypeVar, get_args

from msgspec import Struct

from podfit.core.quantity import Quantity

K = TypeVar("K")
T = TypeVar("T")


def written_otherwise(before: Any, after: Any) -> bool:
    """Whether amounts that are equal are written in two ways."""
    if before is after:
        return False
    if isinstance(before, Quantity):
        return before.format is not after.format
    if isinstance(before, dict):
        return any(value is not after[name] and written_otherwise(value, after[name]) for name, value in before.items())
    if isinstance(before, tuple):
        return any(written_otherwise(one, other) for one, other in zip(before, after, strict=True))
    if isinstance(before, Struct):
        inside = _with_amounts(type(before))
        return any(written_otherwise(getattr(before, field), getattr(after, field)) for field in inside)
    return False


def has_amounts(value: Any) -> bool:
    """Whether there is an amount in the value."""
    if isinstance(value, Quantity):
        return True
    if isinstance(value, dict):
        return any(map(has_amounts, value.values()))
    if isinstance(value, tuple):
        return any(map(has_amounts, value))
    return isinstance(value, Struct) and any(has_amounts(getattr(value, field)) for field in _with_amounts(type(value)))


@lru_cache(maxsize=1024)  # declared kinds come and go
def _with_amounts(kind: type[Struct]) -> tuple[str, ...]:
    hints = {name: hint for base in kind.__mro__ for name, hint in vars(base).get("__annotations__", {}).items()}
    return tuple(name for name in kind.__struct_fields__ if may_hold_amounts(hints[name]))


@cache
def _holds_amounts(kind: type[Struct]) -> bool:
    """As the annotations say it, unevaluated: most kinds of an object are asked for at its first write."""
    return any(
        may_hold_amounts(hint) for base in kind.__mro__ for hint in vars(base).get("__annotations__", {}).values()
    )


def may_hold_amounts(hint: object) -> bool:
    """Whether such a value holds a quantity, or a kind that is not known yet."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _holds_amounts(hint)
    return hint is Quantity or isinstance(hint, str | ForwardRef) or any(map(may_hold_amounts, get_args(hint)))


class Recent(Generic[K, T]):
    """What was made of the last few values, for those that are equal to them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: list[tuple[K, T]] = []  # the newest first; never changed, but replaced: threads read it

    def find(self, value: K) -> tuple[K, T] | None:
        for known in self._known:
            if known[0] == value:
                return known
        return None

    def keep(self, value: K, made: T) -> None:
        self._known = [(value, made), *self._known[: self._most - 1]]
