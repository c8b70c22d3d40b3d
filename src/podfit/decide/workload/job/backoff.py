"""Pauses between failures: 10 s after the first, twice as long after each that follows, 10 minutes at most."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.job.pods import ended_at

FIRST, LONGEST = 10.0, 600.0
FAILURES, IGNORED = "batch.kubernetes.io/job-index-failure-count", "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotations of pods: how often their index failed before."""


class Failures(msgspec.Struct, frozen=True):
    """Failures of a job since its last success; remembered by the controller, and forgotten when it starts anew."""

    count: int = 0
    last: datetime | None = None

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod], now: datetime) -> "Failures":
        """The failures with what ended since."""
        if not succeeded and not failed:
            return self
        before = self.count
        ends = sorted(ended_at(pod, now) for pod in failed)
        if succeeded:
            success = max(ended_at(pod, now) for pod in succeeded)
            before, ends = 0, [end for end in ends if end >= success]
        return Failures(before + len(ends), ends[-1] if ends else (None if succeeded else self.last))

    def remaining(self, now: datetime) -> float:
        """Seconds until the next pod may be made."""
        return pause(self.count, self.last, now) if self.last is not None else 0.0


def pause(failures: int, last: datetime, now: datetime) -> float:
    if failures <= 0:
        return 0.0
    delay = min(FIRST * 2 ** min(failures - 1, 16), LONGEST)
    return max(0.0, (last + timedelta(seconds=delay) - now).total_seconds())


def counted(pod: Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else 0
