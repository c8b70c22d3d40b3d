"""Caches whose size in memory is bounded, for functions whose arguments users write.

`functools.lru_cache` counts entries, and an entry is as large as a user makes it. Where most arguments are short,
`short` keeps only those; where long ones are worth keeping too, `within` bounds the sum of what is kept.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, TypeVarTuple, cast

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Text = TypeVar("Text", str, bytes)
ENTRY = 200
"""Bytes that an entry takes besides what is in it."""
KEPT_PATTERNS = 32 * 2**20
"""Bytes of compiled patterns: `weight_of_pattern`."""


def length(*arguments: object) -> int:
    """Letters or bytes of the arguments that are texts; nested tuples are looked into."""
    size = 0
    for argument in arguments:
        if isinstance(argument, str | bytes):
            size += len(argument)
        elif isinstance(argument, tuple):
            size += length(*argument)
    return size


def short(entries: int, *, longest: int) -> Callable[[Callable[[Text, *Ts], T]], Callable[[Text, *Ts], T]]:
    """As `lru_cache(entries)`, but where the first argument, a text, is longer than `longest` the result is worked out
    every time. Arguments by position; only the first may be of any length."""

    def decorate(function: Callable[[Text, *Ts], T]) -> Callable[[Text, *Ts], T]:
        known = cast(Callable[[Text, *Ts], T], lru_cache(entries)(function))

        @wraps(function)
        def call(text: Text, *args: *Ts) -> T:
            return (function if len(text) > longest else known)(text, *args)

        return call

    return decorate


def within(
    total: int, *, weigh: Callable[[Any], int] | None = None
) -> Callable[[Callable[[*Ts], T]], Callable[[*Ts], T]]:
    """The results of the calls asked for last, as long as their weights are no more than `total` together. A result
    weighs what `weigh` says, or as much as the arguments are long."""

    def decorate(function: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
        known: OrderedDict[tuple[*Ts], tuple[T, int]] = OrderedDict()
        size = 0

        @wraps(function)
        def call(*args: *Ts) -> T:
            nonlocal size
            if (found := known.get(args)) is not None:
                try:  # noqa: SIM105  (suppress costs more than the look-up, and this is on the way of every read)
                    known.move_to_end(args)
                except KeyError:
                    pass  # another thread has made room meanwhile
                return found[0]
            result = function(*args)
            weight = (length(*args) if weigh is None else weigh(result)) + ENTRY
            if weight <= total:
                known[args] = result, weight
                size += weight
            if size > total:
                size = _make_room(known, total)
            return result

        return call

    return decorate


def _make_room(known: OrderedDict[Any, tuple[Any, int]], total: int) -> int:
    """Forget a quarter, and say what the rest weighs; counted anew, as two threads may have counted one entry."""
    size = sum(weight for _, weight in list(known.values()))
    while known and size > 3 * total // 4:
        size -= known.popitem(last=False)[1][1]
    return size


def weight_of_pattern(pattern: Any) -> int:
    """About what RE2's program takes in both directions, and its first states."""
    return 64 * int(pattern.programsize) + 2**16
