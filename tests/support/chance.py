"""Chance from a seed: the same numbers and UUIDs every time."""

from random import Random
from uuid import UUID


class SeededRandom:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)

    def uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))
