"""A memory of what checks found of parts of objects, so that only what is new is judged.

A pod that is resized or reports its status is validated as a whole, as upstream does it, although almost all of it is
as it was: its parts are the very same objects. And pods of one template have parts that are equal. Rules are pure
functions of values that never change, so what was found fine once is fine again. What is wrong is not remembered: it is
said anew, with the path at hand. Defaults are worked out each time: to look for what they made before costs more.
"""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar

from podfit.api.meta import codec
from podfit.api.meta.alike import Recent, has_amounts, written_otherwise

MOST = 4096  # objects for each rule; the next one makes it begin anew
ALIKE = 4  # different values of the last calls with which a new object is compared
LONGEST = 2048  # bytes of a value's encoding: larger ones are not kept
T = TypeVar("T")
E = TypeVar("E")


def passed(check: Callable[[T, str], list[E]]) -> Callable[[T, str], list[E]]:
    """The same check of a value, the path to which it is told, passed by an object that passed it, and by what is equal
    to one of the last that did: rules are about amounts, not about how they are written."""
    known: dict[int, T] = {}  # by id, which the object that is kept keeps to itself
    recent: Recent[T, None] = Recent(ALIKE)

    @wraps(check)
    def checked(value: T, path: str) -> list[E]:
        if not value:
            return check(value, path)
        if id(value) in known or recent.find(value) is not None:
            return []
        errors = check(value, path)
        if not errors and len(codec.encode(value)) <= LONGEST:
            recent.keep(value, None)
            if len(known) >= MOST:
                known.clear()
            known[id(value)] = value
        return errors

    return checked


class PassedValues:
    """Values that passed rules together, of which one is kept for each key: what is cheap to hash of them, such as
    their names. Alike are those that are equal; where `by_text` says so of a value, amounts as they are written. A
    value is kept when its key comes for the second time: of what is never alike nothing is."""

    def __init__(self, most: int, *, longest: int, by_text: Callable[[Any], bool] = has_amounts) -> None:
        self._most, self._longest, self._by_text = most, longest, by_text
        self._known: dict[Hashable, Any] = {}
        self._text_counts: dict[Hashable, bool] = {}  # whether the text counts of those that were found alike
        self._seen: set[int] = set()

    def holds(self, key: Hashable, value: Any) -> bool:
        known = self._known.get(key)
        if known is None or not known == value:  # noqa: SIM201  (values tell equality in C)
            return False
        if (by_text := self._text_counts.get(key)) is None:
            by_text = self._text_counts[key] = self._by_text(known)
        return not (by_text and written_otherwise(known, value))

    def keep(self, key: Hashable, value: Any) -> None:
        """Of larger values, by their encoding, none is kept."""
        if not seen_before(self._seen, key) or len(codec.encode(value)) > self._longest:
            return
        if len(self._known) >= self._most:
            self._known, self._text_counts = {}, {}
        self._known[key] = value
        self._text_counts.pop(key, None)


class PassedObjects:
    """Objects that passed rules, each under a key. They are told by identity, and the larger ones by their encoding are
    not kept."""

    def __init__(self, most: int, *, longest: int) -> None:
        self._most, self._longest = most, longest
        self._known: dict[int, tuple[Hashable, Any]] = {}  # by id, which the object that is kept keeps to itself

    def holds(self, key: Hashable, value: Any) -> bool:
        known = self._known.get(id(value))
        return known is not None and known[0] == key

    def keep(self, key: Hashable, value: Any) -> None:
        if len(codec.encode(value)) > self._longest:
            return
        if len(self._known) >= self._most:
            self._known = {}
        self._known[id(value)] = key, value

    def follow(self, key: Hashable, before: Any, value: Any) -> None:
        """Keep a value that is hardly larger in place of one that is held."""
        self._known.pop(id(before), None)
        self._known[id(value)] = key, value


MOST_SEEN = 4096


def seen_before(seen: set[int], key: Hashable) -> bool:
    """Whether the key is one of those seen last, of which the hashes are kept."""
    number = hash(key)
    if number in seen:
        return True
    if len(seen) >= MOST_SEEN:
        seen.clear()
    seen.add(number)
    return False
