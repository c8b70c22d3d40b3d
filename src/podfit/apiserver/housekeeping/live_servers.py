"""Which API servers on one store are alive, by their leases. Pure.

Each renews a key of its own. Clocks of different machines are never compared: an observer notes by its own when it
first saw the revision that a key has now, and a key that stayed the same for too long belongs to nobody.
"""

from collections.abc import Mapping

import msgspec

RENEW_SECONDS, DEAD_SECONDS = 10.0, 15.0


class Sighting(msgspec.Struct, frozen=True):
    """`since` is when this revision of a key was first seen, on the observer's monotonic clock."""

    revision: int
    since: float


def sighted(before: Mapping[str, Sighting], revisions: Mapping[str, int], now: float) -> dict[str, Sighting]:
    """What an observer knows after it read the keys; who is new begins anew."""
    return {
        name: old if (old := before.get(name)) is not None and old.revision == revision else Sighting(revision, now)
        for name, revision in revisions.items()
    }


def alive(sightings: Mapping[str, Sighting], now: float) -> tuple[str, ...]:
    return tuple(sorted(name for name, sighting in sightings.items() if now - sighting.since < DEAD_SECONDS))
