"""Exponential backoff of containers that keep ending and of images that cannot be pulled.

first failure   tried again at once
then            10 s, 20 s, 40 s … at most 5 min, counted from the failure
10 min without  forgotten
another form    forgotten too: a container that ran out of memory and was resized starts at once
"""

import hashlib
import json
from typing import TypeAlias

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.api.meta.codec import to_dict

FIRST = 10.0
LONGEST = 300.0
FORGET_AFTER = 2 * LONGEST
RETRY_SECONDS = 10.0
"""Seconds until what failed at a pod is tried again."""
OUTAGE_SECONDS = 1.0
"""The same, where the runtime did not answer: one that was killed is back within a second."""

RETRY_SECONDS = 10.0  # after a failure that no back-off governs
OUTAGE_SECONDS = 1.0  # a runtime that was killed is back within a second

Key: TypeAlias = tuple[str, ...]


def size_hash(container: Container) -> str:
    """Changes when a container is worth another try after it failed: with its image or its resources, as upstream."""
    parts = [container.image, to_dict(container.resources)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def duration(seconds: float) -> str:
    """As Go writes whole seconds: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


class Backoff(msgspec.Struct, frozen=True):
    """The delay in force since the last try, in seconds on any one clock. `form` is what was tried: after failures of
    another one nothing waits.
    """

    delay: float
    since: float
    form: str = ""

    def remaining(self, failed_at: float, now: float, form: str = "") -> float:
        """Seconds still to wait after a failure at `failed_at`; 0 = try now.

        A failure that lies ahead by more than its delay was before the time of day was set back: its wait would have no
        end. By less, it may be a matter of two clocks' resolution.
        """
        if self.form != form or failed_at - now > self.delay or failed_at - self.since > FORGET_AFTER:
            return 0.0
        return min(self.delay, max(0.0, failed_at + self.delay - now))


def tried(before: Backoff | None, now: float, form: str = "") -> Backoff:
    """Another attempt begins: the next one will have to wait longer."""
    if before is None or before.form != form or now - before.since > FORGET_AFTER:
        return Backoff(FIRST, now, form)
    return Backoff(min(before.delay * 2, LONGEST), now, form)


class CrashBackoff:
    """The back-offs of many things. Keys begin with the pod's uid."""

    def __init__(self) -> None:
        self._entries: dict[Key, Backoff] = {}

    def delay(self, key: Key) -> float:
        """The delay in force, 0 when there is none."""
        entry = self._entries.get(key)
        return entry.delay if entry is not None else 0.0

    def remaining(self, key: Key, failed_at: float, now: float, form: str = "") -> float:
        """As `Backoff.remaining`."""
        entry = self._entries.get(key)
        return entry.remaining(failed_at, now, form) if entry is not None else 0.0

    def tried(self, key: Key, now: float, form: str = "") -> None:
        """Another attempt begins."""
        self._entries[key] = tried(self._entries.get(key), now, form)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        for key in [key for key in self._entries if key[0] == uid]:
            del self._entries[key]
