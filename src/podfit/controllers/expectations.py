"""Expectations: creations and deletions that a controller's informers do not show yet.

While something is awaited the copies do not tell how many there are, so a key with open expectations makes and ends
nothing. What never arrives is given up after five minutes, as upstream's ControllerExpectations do.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

import msgspec

from podfit.core.clock import Clock

K = TypeVar("K", bound=Hashable)

SECONDS = 300.0


class _Expected(msgspec.Struct):
    since: float
    creations: int = 0
    deletions: set[str] = msgspec.field(default_factory=set)  # UIDs


class Expectations(Generic[K]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._awaited: dict[K, _Expected] = {}

    def satisfied(self, key: K) -> bool:
        """Whether the copies can be believed: nothing is awaited, or it has been for too long."""
        awaited = self._awaited.get(key)
        if awaited is None or (awaited.creations <= 0 and not awaited.deletions):
            return True
        return self._clock.monotonic() - awaited.since > SECONDS

    def expect(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """From now on this and nothing else is awaited; deletions by UID."""
        self._awaited[key] = _Expected(self._clock.monotonic(), creations, set(deletions))

    def created(self, key: K, number: int = 1) -> None:
        """So many came, or will not."""
        if (awaited := self._awaited.get(key)) is not None:
            awaited.creations -= number

    def deleted(self, key: K, uid: str) -> None:
        """It is gone or going, or will not."""
        if (awaited := self._awaited.get(key)) is not None:
            awaited.deletions.discard(uid)

    def forget(self, key: K) -> None:
        self._awaited.pop(key, None)
