"""The pause of a set whose pods are rejected by their node: they fail before any container ran, as new ones would.

Upstream makes new ones at once, for ever. Here the first rounds are at once, each as many as there are replicas; then
the pause is twice as long after each.
"""

from collections.abc import Iterable
from datetime import datetime

from podfit.api.core.v1.pods.phase import FAILED
from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import parse_time

AT_ONCE = 5
"""Rounds without a pause."""
FIRST, LONGEST = 1.0, 60.0
REMEMBERED = 600.0
"""Seconds for which a rejected pod counts."""
_MOST_ROUNDS = 16


def is_rejected(pod: Pod) -> bool:
    """Whether it failed and none of its containers was ever told of."""
    return pod.status.phase == FAILED and not pod.status.container_statuses


def pause(pods: Iterable[Pod], replicas: int, now: datetime) -> float:
    """Seconds until more may be made; `pods` are those of the set."""
    made = [parse_time(pod.metadata.creation_timestamp or "") for pod in pods if is_rejected(pod)]
    recent = [moment for moment in made if (now - moment).total_seconds() < REMEMBERED]
    rounds = min(len(recent) // max(1, replicas), _MOST_ROUNDS) - AT_ONCE
    if rounds < 0 or not recent:
        return 0.0
    delay: float = min(FIRST * 2.0**rounds, LONGEST)
    return max(0.0, delay - (now - max(recent)).total_seconds())
