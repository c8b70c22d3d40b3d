"""Backoff of a node group that failed: for how long nothing is asked of it (C-019, C-020).

First `first` seconds; a failure after the end of a pause doubles it, up to `longest`; one within a pause begins it
anew. All is forgotten `reset` seconds after the last failure. Moments are seconds of a monotonic clock.
"""

import msgspec

from podfit.decide.capacity.settings import BackoffSettings


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """`code` and `text` say what failed last."""

    duration: float
    until: float
    failed_at: float
    code: str = ""
    text: str = ""

    def holds(self, at: float) -> bool:
        return at < self.until


def failed(before: Backoff | None, at: float, settings: BackoffSettings, code: str, text: str) -> Backoff:
    """The back-off after one more failure."""
    duration = settings.first
    if before is not None and at - before.failed_at < settings.reset:
        doubled = min(2 * before.duration, settings.longest)
        duration = before.duration if before.holds(at) else doubled
    return Backoff(duration=duration, until=at + duration, failed_at=at, code=code, text=text)


def current(before: Backoff, at: float, settings: BackoffSettings) -> Backoff | None:
    """None when it is forgotten."""
    return before if before.holds(at) or at - before.failed_at < settings.reset else None
