"""Which change of the cluster is worth another try of a pod that fitted nowhere (spec 4.3).

A pod that waits for CPU is not tried again because someone gave back memory (R-083). The question is asked of a frozen
`Change`, so a test can ask it without a queue.
"""

from dataclasses import dataclass

from podfit.api.base import ResourceList
from podfit.core.quantity import ZERO
from podfit.decide.place import Unschedulable


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod that was assigned to a node left it, or finished."""


@dataclass(frozen=True, slots=True)
class PodShrank:
    """An assigned pod now asks for less; `resources` names of what."""

    resources: frozenset[str]


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """A node came, grew, or changed its labels, taints or schedulability."""


Change = PodGone | PodShrank | NodeChanged


def worth_retrying(verdict: Unschedulable, change: Change) -> bool:
    """Could this change turn the verdict? Over-eager is allowed, deaf is not."""
    match change:
        case PodGone():
            return bool(verdict.short_of) or "ports" in verdict.filters
        case PodShrank(resources):
            return bool(resources & verdict.short_of)
        case NodeChanged():
            return True


def shrunk(before: ResourceList, after: ResourceList) -> frozenset[str]:
    """Resources of which `after` asks less than `before`."""
    return frozenset(name for name, amount in before.items() if after.get(name, ZERO) < amount)
