"""Event correlation as client-go's EventCorrelator: spam filter, aggregation and deduplication, in bounded memory.

Note ─▶ similar ones are combined ─▶ repeated ones are counted ─▶ an object that is told of too often is not
"""

from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.references import ObjectReference

REMEMBERED = 4096  # events, reasons and objects
SIMILAR, SIMILAR_SECONDS = 10, 600.0
"""Messages of one reason about one object, none later than so long after the one before, from which on they are one
event."""
BURST, REFILL_SECONDS = 25, 300.0
"""Events about one object at once, and how long until there may be another."""
COMBINED = "(combined from similar events): "

K = TypeVar("K")
V = TypeVar("V")


class EventDraft(msgspec.Struct, frozen=True):
    """What is to be told. `resource_version` is that of the object it was made from."""

    regarding: ObjectReference  # without its resource version
    type: str
    reason: str
    message: str
    action: str
    resource_version: str
    combined: bool = False
    """Whether it stands for similar ones; upstream's words for these name no reporter."""


class Key(msgspec.Struct, frozen=True):
    """Notes of one key are one event with a count. Of the message only its hash is kept; similar ones have none."""

    regarding: ObjectReference
    type: str
    reason: str
    message: int = 0
    action: str = ""


class Counted(msgspec.Struct):
    """An event as far as it is known. `name` is empty until it was stored."""

    count: int = 0
    first: str = ""
    name: str = ""


class _Messages(msgspec.Struct):
    """The messages of one reason about one object, by their hashes."""

    last: float
    seen: set[int]


class _Bucket(msgspec.Struct):
    tokens: float
    filled: float


class _Latest(Generic[K, V]):
    """The values that were asked for last."""

    def __init__(self) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, new: V) -> V:
        """What is known of the key; else `new`, which is kept."""
        found = self._values.setdefault(key, new)
        self._values.move_to_end(key)
        if len(self._values) > REMEMBERED:
            self._values.popitem(last=False)
        return found


class Correlator:
    """The correlator of one component. Moments are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._similar: _Latest[Key, _Messages] = _Latest()
        self._counted: _Latest[Key, Counted] = _Latest()
        self._buckets: _Latest[ObjectReference, _Bucket] = _Latest()

    def combined(self, note: EventDraft, now: float) -> tuple[EventDraft, Key]:
        """The note as it is told, and the event that it is of."""
        alike = Key(note.regarding, note.type, note.reason)
        messages = self._similar.get(alike, _Messages(now, set()))
        if now - messages.last > SIMILAR_SECONDS:
            messages.seen.clear()
        messages.last = now
        message = hash(note.message)
        messages.seen.add(message)
        if len(messages.seen) < SIMILAR:
            return note, Key(note.regarding, note.type, note.reason, message, note.action)
        messages.seen.pop()
        return replace(note, message=COMBINED + note.message, combined=True), alike

    def count(self, key: Key, when: str) -> Counted:
        """The event with one more. `when` is the time of day."""
        counted = self._counted.get(key, Counted())
        counted.count += 1
        counted.first = counted.first or when
        return counted

    def may_tell(self, regarding: ObjectReference, now: float) -> bool:
        """Whether another event about the object is within what is allowed; if so it is taken."""
        about = replace(regarding, field_path="")
        bucket = self._buckets.get(about, _Bucket(BURST, now))
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.filled) / REFILL_SECONDS)
        bucket.filled = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
