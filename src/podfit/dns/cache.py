"""Answers of resolvers that are kept for a while: a bounded number, of a bounded size.

Names that there are not have a room of their own, as with CoreDNS: who asks for many of them throws out no answer that
others need.
"""

from collections.abc import Hashable

import msgspec

from podfit.decide.dns.resolvers import Believed
from podfit.dns.wire import Packed

MOST_ENTRIES, MOST_BYTES = 9984, 4 << 20
"""Of each room; the number is CoreDNS' own."""
OVERHEAD = 400
POSITIVE, NEGATIVE = "success", "denial"


class Kept(msgspec.Struct, frozen=True):
    what: Believed
    packed: Packed
    since: float
    until: float


class _Room:
    """The oldest go first."""

    def __init__(self, entries: int, size: int) -> None:
        self._kept: dict[Hashable, Kept] = {}
        self._most, self._largest, self._bytes = entries, size, 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> Kept | None:
        return self._kept.get(key)

    def put(self, key: Hashable, kept: Kept) -> None:
        self.drop(key)
        self._kept[key] = kept
        self._bytes += _size(kept)
        while len(self._kept) > self._most or self._bytes > self._largest:
            self.drop(next(iter(self._kept)))

    def drop(self, key: Hashable) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._bytes -= _size(old)


def _size(kept: Kept) -> int:
    records = sum(len(record.owner) + len(record.data) for record in (*kept.what.records, *kept.what.authority))
    return OVERHEAD + len(kept.packed.body) + records


class AnswerCache:
    def __init__(self, entries: int = MOST_ENTRIES, size: int = MOST_BYTES) -> None:
        self._rooms = {POSITIVE: _Room(entries, size), NEGATIVE: _Room(entries, size)}

    @property
    def entries(self) -> dict[str, int]:
        return {kind: len(room) for kind, room in self._rooms.items()}

    def get(self, key: Hashable, now: float) -> Kept | None:
        """None when there is none that is good any more."""
        for room in self._rooms.values():
            kept = room.get(key)
            if kept is not None:
                if now < kept.until:
                    return kept
                room.drop(key)
        return None

    def put(self, key: Hashable, kept: Kept) -> None:
        for room in self._rooms.values():
            room.drop(key)
        self._rooms[kind_of(kept)].put(key, kept)


def kind_of(kept: Kept) -> str:
    return POSITIVE if kept.what.records else NEGATIVE
