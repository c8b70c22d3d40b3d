"""Caches whose size in memory is bounded, for functions whose arguments users write.

`functools.lru_cache` counts entries, and an entry is as large as a user makes it. Where most arguments are short,
`short` keeps only those; where long ones are worth keeping too, `within` bounds the sum of what is kept.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar, TypeVarTuple, cast

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
Ts = TypeVarTuple("Ts")
Text = TypeVar("Text", str, bytes)
ENTRY = 200
"""Bytes that an entry takes besides what is in it."""
_TEXTS = (str, bytes)
KEPT_PATTERNS = 32 * 2**20
"""Bytes of compiled patterns: `weight_of_pattern`."""


def length(*arguments: object) -> int:
    """Letters or bytes of the arguments that are texts; nested tuples are looked into."""
    size = 0
    for argument in arguments:
        if isinstance(argument, _TEXTS):
            size += len(argument)
        elif isinstance(argument, tuple):
            size += length(*argument)
    return size


def cached_where_short(entries: int, *, longest: int) -> Callable[[Callable[[Text, *Ts], T]], Callable[[Text, *Ts], T]]:
    """Caches as `lru_cache(entries)`, but where the first argument, a text, is longer than `longest` the result is
    worked out every time. Arguments by position; only the first may be of any length."""

    def decorate(function: Callable[[Text, *Ts], T]) -> Callable[[Text, *Ts], T]:
        known = cast(Callable[[Text, *Ts], T], lru_cache(entries)(function))

        @wraps(function)
        def call(text: Text, *args: *Ts) -> T:
            return (function if len(text) > longest else known)(text, *args)

        return call

    return decorate


class Kept(Protocol[*Ts, R_co]):
    """A function whose results are kept."""

    def __call__(self, *args: *Ts) -> R_co:
        """The result that is kept, or else a new one."""

    def remember(self, result: Any, *args: *Ts) -> None:
        """Keep a result that is known without the function."""

    def known(self, *args: *Ts) -> R_co | None:
        """The result, if it is kept."""


def cached_within(
    total: int, *, weigh: Callable[[Any], int] | None = None
) -> Callable[[Callable[[*Ts], T]], Kept[*Ts, T]]:
    """The results of the calls asked for last, as long as their weights are no more than `total` together. A result
    weighs what `weigh` says, or as much as the arguments are long; of more than half of the total it is not kept.

    Once the results that were asked for weigh half of the total, those that nobody has asked for since are forgotten.
    So to look one up is to look it up: nothing is put in order."""

    def decorate(function: Callable[[*Ts], T]) -> Kept[*Ts, T]:
        recent: dict[tuple[*Ts], tuple[T, int]] = {}
        earlier: dict[tuple[*Ts], tuple[T, int]] = {}
        size = 0  # of the recent ones; an entry that two threads make at once is counted twice

        @wraps(function)
        def call(*args: *Ts) -> T:
            if (found := recent.get(args)) is not None:
                return found[0]
            if (found := earlier.get(args)) is None:
                return remember(function(*args), *args)
            return put(found, args)

        def remember(result: T, *args: *Ts) -> T:
            return put((result, (length(*args) if weigh is None else weigh(result)) + ENTRY), args)

        def put(found: tuple[T, int], args: tuple[*Ts]) -> T:
            nonlocal recent, earlier, size
            result, weight = found
            if weight > total // 2:
                return result
            if size + weight > total // 2:
                recent, earlier, size = {}, recent, 0
            recent[args] = found
            size += weight
            return result

        def known(*args: *Ts) -> T | None:
            return recent.get(args, earlier.get(args, (None, 0)))[0]

        call.remember, call.known = remember, known  # type: ignore[attr-defined]
        return cast(Kept[*Ts, T], call)

    return decorate


def weight_of_pattern(pattern: Any) -> int:
    """About what RE2's program takes in both directions, and its first states."""
    return 64 * int(pattern.programsize) + 2**16
