"""A cache of validation and defaulting results for parts of objects, keyed by their encoding.

A pod that is resized or reports its status is defaulted and validated as a whole, as upstream does it, although almost
all of it is as it was; and pods of one template differ in little. Rules are pure functions of values that never change,
so what was found fine once is fine again, and what was added once is added again. What is wrong is not remembered: it
is said anew, with the path at hand.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from podfit.api.meta import codec

MOST = 4096  # values for each rule; the next one makes it begin anew
LONGEST = 2048  # bytes of a value's encoding: larger ones are not kept
T = TypeVar("T")
E = TypeVar("E")


def memoized_default(default: Callable[[T], T]) -> Callable[[T], T]:
    """The same default, which for a value like an earlier one is what it was for that: the value itself where it had
    nothing to add, else what it made then."""
    known: dict[bytes, T | None] = {}

    @wraps(default)
    def defaulted(value: T) -> T:
        text = codec.encode(value)
        if text in known:
            return known[text] or value
        made = default(value)
        _make_room(known)
        if len(text) <= LONGEST:
            known[text] = None if made is value else made
        return made

    return defaulted


def passed(check: Callable[[T, str], list[E]]) -> Callable[[T, str], list[E]]:
    """The same check of a value, the path to which it is told, passed by what is like a value that passed it."""
    known: set[bytes] = set()
    latest: object = known  # no value yet

    @wraps(check)
    def checked(value: T, path: str) -> list[E]:
        nonlocal latest
        if value is latest:  # upstream's rules ask several times about one object
            return []
        if not value:
            return check(value, path)
        text = codec.encode(value)
        if text in known:
            latest = value
            return []
        errors = check(value, path)
        if not errors and len(text) <= LONGEST:
            _make_room(known)
            known.add(text)
            latest = value
        return errors

    return checked


def _make_room(known: dict[bytes, T | None] | set[bytes]) -> None:
    if len(known) >= MOST:
        known.clear()
