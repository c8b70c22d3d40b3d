"""Growing arrays with slots that are taken, released and taken again."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

FEWEST = 16
T = TypeVar("T", bound=np.generic)


class Slots:
    """`used` says of each place below `capacity` whether it is taken."""

    def __init__(self) -> None:
        self.used = np.zeros(0, dtype=np.bool_)
        self._free: list[int] = []

    @property
    def capacity(self) -> int:
        return len(self.used)

    def take(self, number: int) -> NDArray[np.intp]:
        """Free places; when there are too few, arrays have to grow by a quarter at least."""
        lacking = number - len(self._free)
        if lacking > 0:
            wanted = self.capacity + max(lacking, FEWEST, self.capacity // 4)
            self._free = [*range(wanted - 1, self.capacity - 1, -1), *self._free]
            self.used = self.grown(self.used, wanted)
        places = np.array([self._free.pop() for _ in range(number)], dtype=np.intp)
        self.used[places] = True
        return places

    def give_back(self, places: NDArray[np.intp]) -> None:
        self.used[places] = False
        self._free += places.tolist()

    def grown(self, array: NDArray[T], capacity: int = 0) -> NDArray[T]:
        """The array with zeros behind it, as long as there are places."""
        result = np.zeros(capacity or self.capacity, dtype=array.dtype)
        result[: len(array)] = array
        return result
