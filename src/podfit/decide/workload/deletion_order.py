"""The order in which surplus pods of a replica set are deleted.

In this order: not on a node, not running, not ready, cheap to delete (an annotation), with more of its like on the
same node, ready for a shorter time, restarted more often, younger. Times are compared by their order of magnitude
only, so that not always the youngest goes, which would be all of one zone or one node after an outage.
"""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cmp_to_key

import msgspec

from podfit.api.core.v1.pods.aggregate import sidecar_names
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.core.times import parse_time
from podfit.decide.workload.pods import is_ready, ready_since

COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COSTS = 2**31


class _Facts(msgspec.Struct, frozen=True):
    pod: Pod
    first: tuple[bool, int, bool, int, int]
    ready: datetime | None
    restarts: tuple[int, int]
    created: datetime | None


def first_to_go(pods: Sequence[Pod], related: Sequence[Pod], count: int, now: datetime) -> list[Pod]:
    """`count` of `pods`. `related` are all of the same application, these among them: nodes with several lose one."""
    if count >= len(pods):
        return list(pods)
    crowd = Counter(pod.spec.node_name for pod in related if is_active(pod) and pod.spec.node_name)

    def order(one: _Facts, other: _Facts) -> int:
        return _order(one, other, now)

    facts = [_facts(pod, crowd[pod.spec.node_name]) for pod in pods]
    return [fact.pod for fact in sorted(facts, key=cmp_to_key(order))[:count]]


def cost_of(pod: Pod) -> int:
    """0 without the annotation, or with one that is no number of 32 bits."""
    text = pod.metadata.annotations.get(COST, "")
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        return 0
    return int(text) if -_COSTS <= int(text) < _COSTS else 0


def _facts(pod: Pod, crowd: int) -> _Facts:
    phase, made = _PHASES.get(pod.status.phase, 0), pod.metadata.creation_timestamp
    first = bool(pod.spec.node_name), phase, is_ready(pod), cost_of(pod), -crowd
    return _Facts(pod, first, ready_since(pod), _restarts(pod), parse_time(made) if made else None)


def _restarts(pod: Pod) -> tuple[int, int]:
    """The most restarts of a container, and of a sidecar."""
    sidecars = sidecar_names(pod.spec)
    status = pod.status
    regular = max((container.restart_count for container in status.container_statuses), default=0)
    beside = [container.restart_count for container in status.init_container_statuses if container.name in sidecars]
    return regular, max(beside, default=0)


def _order(one: _Facts, other: _Facts, now: datetime) -> int:
    """Below 0 when `one` goes first."""
    if one.first != other.first:
        return -1 if one.first < other.first else 1
    if is_ready(one.pod) and one.ready != other.ready:
        return _younger(one, other, one.ready, other.ready, now)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created != other.created:
        return _younger(one, other, one.created, other.created, now)
    return 0


def _younger(one: _Facts, other: _Facts, since: datetime | None, others: datetime | None, now: datetime) -> int:
    """Whether it is younger by the order of magnitude; among the same, by chance, which the UID stands for."""
    if since is None or others is None:
        return -1 if since is None else 1
    rank = _magnitude(since, now) - _magnitude(others, now)
    if rank:
        return rank
    return -1 if one.pod.metadata.uid < other.pod.metadata.uid else 1


def _magnitude(since: datetime, now: datetime) -> int:
    """The order of magnitude of the time that has passed, in nanoseconds, to the base of 2."""
    seconds = (now - since).total_seconds()
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1
