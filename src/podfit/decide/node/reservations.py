"""Reservations for critical pods while other pods end for them (R-117).

Until a critical pod has its room nobody else gets it: a smaller pod behind it would take what the first victim leaves,
and another victim would have to be found. Reservations are not persisted: after a restart they are decided again.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.decide.resize.neighbours import Neighbour


class Reservations(msgspec.Struct, frozen=True):
    """`held` by the UID of the critical pod; `ending` are the UIDs of pods that were told to end and have not yet."""

    held: Mapping[str, Neighbour] = msgspec.field(default_factory=dict)
    ending: frozenset[str] = frozenset()

    def reserve(self, uid: str, counts: Neighbour, victims: Iterable[str]) -> "Reservations":
        return Reservations({**self.held, uid: counts}, self.ending | frozenset(victims))

    def release(self, uid: str) -> "Reservations":
        """The pod has its room, or wants it no more. Its victims end all the same."""
        if uid not in self.held:
            return self
        return replace(self, held={other: counts for other, counts in self.held.items() if other != uid})

    def forget(self, uid: str) -> "Reservations":
        """The pod is over: it neither waits nor stands in the way."""
        return replace(self.release(uid), ending=self.ending - {uid})
