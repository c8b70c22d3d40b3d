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

Key: TypeAlias = tuple[str, ...]


def size_hash(container: Container) -> str:
    """Changes when a container is worth another try after it failed: with its image or its resources, as upstream."""
    parts = [container.image, to_dict(container.resources)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class _Entry(msgspec.Struct):
    delay: float
    since: float  # of the last `tried`
    form: str


class CrashBackoff:
    """Times are seconds on any one clock. Keys begin with the pod's uid. `form` is what was tried: after failures of
    another one nothing waits.
    """

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry] = {}

    def delay(self, key: Key) -> float:
        """The delay in force, 0 when there is none."""
        entry = self._entries.get(key)
        return entry.delay if entry is not None else 0.0

    def remaining(self, key: Key, failed_at: float, now: float, form: str = "") -> float:
        """Seconds still to wait after a failure at `failed_at`; 0 = try now.

        A failure that lies ahead by more than its delay was before the time of day was set back: its wait would have no
        end. By less, it may be a matter of two clocks' resolution.
        """
        entry = self._entries.get(key)
        if entry is None or entry.form != form:
            return 0.0
        if failed_at - now > entry.delay or failed_at - entry.since > FORGET_AFTER:
            return 0.0
        return min(entry.delay, max(0.0, failed_at + entry.delay - now))

    def tried(self, key: Key, now: float, form: str = "") -> None:
        """Another attempt begins: the next one will have to wait longer."""
        entry = self._entries.get(key)
        if entry is None or entry.form != form or now - entry.since > FORGET_AFTER:
            self._entries[key] = _Entry(FIRST, now, form)
        else:
            entry.delay, entry.since = min(entry.delay * 2, LONGEST), now

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        for key in [key for key in self._entries if key[0] == uid]:
            del self._entries[key]
