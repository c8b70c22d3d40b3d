"""Utilization of a node: how much of it its pods ask for, by which a node is taken for one that could go.

Requests count as the scheduler counts them, with what a waiting resize asks for. Pods that should have ended long ago
do not count.
"""

import math
from collections.abc import Iterable
from datetime import datetime

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.decide.capacity.drain import is_daemon_set_pod, is_long_terminating
from podfit.decide.pod.requests import pod_requests


class UtilizationError(ValueError):
    """The node does not say how much of a resource pods may have."""


class Utilization(msgspec.Struct, frozen=True):
    """Shares of the allocatable that pods ask for; `resource` names the larger.

    Where daemon set or mirror pods are ignored and take all that there is, a share is infinite, NaN or below zero.
    """

    cpu: float
    memory: float

    @property
    def resource(self) -> str:
        return "cpu" if self.cpu > self.memory else "memory"

    @property
    def share(self) -> float:
        return self.cpu if self.resource == "cpu" else self.memory


def utilization(
    node: Node,
    pods: Iterable[Pod],
    now: datetime,
    *,
    ignore_daemon_sets: bool = False,
    ignore_mirror_pods: bool = False,
) -> Utilization:
    """How much of the node its pods ask for. Raises UtilizationError.

    Pods that are ignored leave both sides: what they ask for is not counted, nor is it there for others.
    """
    asked, aside = {"cpu": 0, "memory": 0}, {"cpu": 0, "memory": 0}
    allocatable = {name: _allocatable(node, name) for name in asked}
    for pod in pods:
        ignored = (ignore_daemon_sets and is_daemon_set_pod(pod)) or (ignore_mirror_pods and is_mirror(pod))
        if not ignored and is_long_terminating(pod, now):
            continue
        requests, counted = pod_requests(pod, use_status=True), aside if ignored else asked
        for name in counted:
            counted[name] += requests.get(name, ZERO).milli()
    shares = (_share(asked[name], allocatable[name] - aside[name]) for name in asked)
    return Utilization(*shares)


def _allocatable(node: Node, name: str) -> int:
    """In thousandths."""
    amount = node.status.allocatable.get(name)
    if amount is None:
        raise UtilizationError(f"failed to get {name} from {node.metadata.name}")
    if not amount:
        raise UtilizationError(f"{name} is 0 at {node.metadata.name}")
    return amount.milli()


def _share(asked: int, room: int) -> float:
    if room:
        return asked / room
    return math.inf if asked else math.nan
