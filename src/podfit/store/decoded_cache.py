"""A cache of decoded values, bounded in bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

LIMIT = 16 * 2**20


class Remembered:
    """Values by key, the one that was asked for longest ago forgotten first. Counted is the value, and the stored one
    of about its size that the key holds on to.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._known: OrderedDict[Hashable, bytes] = OrderedDict()

    @property
    def size(self) -> int:
        return self._size

    def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        value = self._known[key] = make()
        self._size += 2 * len(value)
        while self._size > self._limit:
            _, forgotten = self._known.popitem(last=False)
            self._size -= 2 * len(forgotten)
        return value
