"""Scores of NodeResourcesFit: how much of a node's resources is taken, by one of upstream's three strategies.

    LeastAllocated              what is left, so that pods go where most is free
    MostAllocated               what is taken, so that few nodes are used
    RequestedToCapacityRatio    what a line through the points of a shape says of the share that is taken

Each resource has a weight, and what a node has none of is left out. Arithmetic is upstream's, in whole numbers.
"""

import math
from enum import StrEnum

import msgspec

from podfit.core.quantity import ZERO
from podfit.decide.placement.view import NodeInfo, Resident

MOST = 100
SHAPE_SCORES = 10
"""A shape's scores go from 0 to this."""


class Strategy(StrEnum):
    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


class FitScoring(msgspec.Struct, frozen=True):
    """`resources` with their weights; `shape` are points of utilization (percent) and score (0 to 10), for the ratio
    only: at least one, utilization growing."""

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    shape: tuple[tuple[int, int], ...] = ()


LEAST_ALLOCATED = FitScoring()


def fit_score(subject: Resident, view: NodeInfo, scoring: FitScoring = LEAST_ALLOCATED) -> int:
    """0 to 100. Containers without a request for CPU or memory count as small ones."""
    total = weights = 0
    for name, weight in scoring.resources:
        capacity, taken = _amounts(subject, view, name)
        if not capacity:
            continue
        if scoring.strategy is Strategy.LEAST_ALLOCATED:
            score = max(capacity - taken, 0) * MOST // capacity
        elif scoring.strategy is Strategy.MOST_ALLOCATED:
            score = min(taken, capacity) * MOST // capacity
        else:
            score = _on_line(scoring.shape, min(taken, capacity) * 100 // capacity)
            if not score:  # upstream's quirk: the resource then has no weight either
                continue
        total += score * weight
        weights += weight
    if not weights:
        return 0
    if scoring.strategy is Strategy.REQUESTED_TO_CAPACITY_RATIO:
        return math.floor(total / weights + 0.5)
    return total // weights


def _amounts(subject: Resident, view: NodeInfo, name: str) -> tuple[int, int]:
    """What the node has, and what is taken once the pod is there. Nothing of a resource of special hardware that the
    pod does not ask for: such nodes are judged by what all have."""
    match name:
        case "cpu":
            return view.capacity[0], view.weight[0] + subject.weight[0]
        case "memory":
            return view.capacity[1], view.weight[1] + subject.weight[1]
    more = subject.requests.get(name, ZERO).value()
    if not more and name != "ephemeral-storage":
        return 0, 0
    return view.node.status.allocatable.get(name, ZERO).value(), view.requested.get(name, ZERO).value() + more


def _on_line(shape: tuple[tuple[int, int], ...], utilization: int) -> int:
    """0 to 100, straight between the points and level beyond them; a division is cut off towards 0, as Go's is."""
    scale = MOST // SHAPE_SCORES
    before, low = 0, 0
    for index, (point, score) in enumerate(shape):
        if utilization <= point:
            if not index:
                return score * scale
            rise = (score * scale - low) * (utilization - before)
            return low + (abs(rise) // (point - before)) * (1 if rise > 0 else -1)
        before, low = point, score * scale
    return low
