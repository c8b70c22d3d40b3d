"""Exponential backoff of containers that keep ending and of images that cannot be pulled.

first failure   tried again at once
then            10 s, 20 s, 40 s … at most 5 min, counted from the failure
10 min without  forgotten
another form    forgotten too: a container that ran out of memory and was resized starts at once
"""

import hashlib
import json

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


def size_hash(container: Container) -> str:
    """Changes when a container is worth another try after it failed: with its image or its resources, as upstream."""
    parts = [container.image, to_dict(container.resources)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def duration(seconds: float) -> str:
    """The time as Go writes whole seconds: 10s, 1m20s, 5m0s."""
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
