"""Room that is kept for critical pods while others end for them (R-117).

Until such a pod has its room nobody else gets it: a smaller pod behind it would take what the first victim leaves, and
another victim would have to be found. Claims are no promises and are not kept on disk: after a restart they are found
again.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.decide.fit import Neighbour


class Claims(msgspec.Struct, frozen=True):
    """`held` by the claimant's UID; `ending` are the pods that were told to end and have not yet."""

    held: Mapping[str, Neighbour] = msgspec.field(default_factory=dict)
    ending: frozenset[str] = frozenset()

    def with_claim(self, uid: str, counts: Neighbour, victims: Iterable[str]) -> "Claims":
        return Claims({**self.held, uid: counts}, self.ending | frozenset(victims))

    def without_claim(self, uid: str) -> "Claims":
        """It has its room, or wants it no more. The victims end all the same."""
        if uid not in self.held:
            return self
        return replace(self, held={other: counts for other, counts in self.held.items() if other != uid})

    def without(self, uid: str) -> "Claims":
        """The pod is over: it neither waits nor stands in the way."""
        return replace(self.without_claim(uid), ending=self.ending - {uid})
