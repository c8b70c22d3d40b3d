"""Failed pods of a daemon set wait longer each time until they are made anew, so as not to fight with their node."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.phase import FAILED
from podfit.api.core.v1.pods.types import Pod
from podfit.core.backoff import delay_after
from podfit.decide.workload.daemon.nodes import node_of
from podfit.decide.workload.daemon.steps import DaemonStep

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 900.0
"""Seconds, as upstream's."""


class NodeFailures(msgspec.Struct, frozen=True):
    """On one node: how many, and until when its pod is not made anew, in seconds of a monotonic clock."""

    times: int = 0
    until: float = 0.0


class Spared(msgspec.Struct, frozen=True):
    """`step` without the pods that wait still; `ended` are those that go now; `again`: seconds until the next may."""

    step: DaemonStep
    ended: tuple[Pod, ...] = ()
    failures: Mapping[str, NodeFailures] = {}
    again: float | None = None


def spared(step: DaemonStep, failures: Mapping[str, NodeFailures], now: float) -> Spared:
    """`failures` are by node."""
    waiting, going, counted = dict[str, float](), list[Pod](), dict(failures)
    for pod in step.ended:
        node = node_of(pod)
        if pod.status.phase == FAILED:
            known = counted.get(node, NodeFailures())
            if known.until > now:
                waiting[pod.metadata.uid] = known.until - now
                continue
            times = 0 if now - known.until > 2 * LONGEST_PAUSE else known.times
            counted[node] = NodeFailures(times + 1, now + delay_after(times, FIRST_PAUSE, LONGEST_PAUSE))
        going.append(pod)
    return Spared(_without(step, waiting), tuple(going), counted, min(waiting.values(), default=None))


def _without(step: DaemonStep, waiting: Iterable[str]) -> DaemonStep:
    uids = frozenset(waiting)
    return replace(step, delete=tuple(pod for pod in step.delete if pod.metadata.uid not in uids))
