"""A cache of encoded lists, valid as long as nothing in the list changes.

Clients that come back all at once, after a restart or a broken connection, ask for the same lists. Joining a thousand
items costs as much as sending them, so the joined items are kept. Whether they still hold is seen from the records
themselves: a store hands out the same ones until they are written again, and comparing a thousand of those takes
microseconds. So nothing has to be told of writes, and no answer is ever older than the store.

What is too large to be kept, or kept for nobody else, is not joined at all: it is sent in pieces.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain

import msgspec

from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.registry import stored
from podfit.net.wire import Pieces, Shared
from podfit.store.index import size_of
from podfit.store.protocol import Record

KEPT = 16 * 2**20  # bytes, of all lists together
LARGE = KEPT // 2  # bytes of the records of one list, which are kept twice
LONG = 128 * 1024  # bytes of the records of a list that is not kept: what is longer is sent in pieces
MANY = 5000  # records of one list: more are not joined in one turn of the event loop
FEW = 32  # records; shorter lists are made anew more quickly than they are looked up


class _Kept(msgspec.Struct, frozen=True):
    records: Sequence[Record]
    items: bytes
    head: bytes
    whole: bytes


class ListCache:
    """Lists by kind and by what was asked for (`place`: the namespace, and where in the list it begins)."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[ResourceInfo, str], _Kept] = OrderedDict()
        self._size = 0

    def body(self, info: ResourceInfo, place: str | None, records: Sequence[Record], head: bytes) -> bytes | Pieces:
        """`head`, which says the revision and how to go on, the records as items, and the end of the list. Without a
        `place` nothing is kept."""
        if place is None or len(records) < FEW:
            return _joined(info, records, head)
        key = info, place
        old = self._kept.get(key)
        if old is not None and old.records == records:
            if old.head == head:
                self._kept.move_to_end(key)
                return old.whole
            items = old.items
        elif len(records) > MANY or size_of(records) > LARGE:
            return _joined(info, records, head)
        else:
            items = b"".join(stored.items(info, records))
        new = _Kept(records, items, head, Shared(b"".join((head, items, b"]}\n"))))
        self._keep(key, new)
        return new.whole

    def _keep(self, key: tuple[ResourceInfo, str], new: _Kept) -> None:
        self._forget(key)
        self._kept[key] = new
        self._size += _weight(new)
        while self._size > KEPT and self._kept:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: tuple[ResourceInfo, str]) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._size -= _weight(old)


def _joined(info: ResourceInfo, records: Sequence[Record], head: bytes) -> bytes | Pieces:
    if (size := size_of(records)) > LONG:
        return Pieces(chain((head,), stored.each_item(info, records), (b"]}\n",)), size=size)
    return b"".join((head, *stored.items(info, records), b"]}\n"))


def _weight(kept: _Kept) -> int:
    return len(kept.items) + len(kept.whole)
