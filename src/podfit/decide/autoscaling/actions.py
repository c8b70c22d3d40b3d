"""The updater's actions, and the outcomes that it is told of."""

from collections.abc import Generator
from enum import Enum
from typing import TypeAlias

import msgspec

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.patches import Operation

FORBIDDEN, CONFLICT, TOO_MANY, SERVER_ERROR = 403, 409, 429, 500
_NODE_CAPACITY = "NodeCapacity"  # the cause of what a node can never hold


class ActionOutcome(Enum):
    """`NO_CAPACITY`: the API refused a resize because the node is smaller than that. `UNKNOWN`: it gave no answer, or
    one that says nothing of the pod, so the next run tries again.
    """

    DONE = "done"
    REFUSED = "refused"
    NO_CAPACITY = "no capacity"
    UNKNOWN = "unknown"


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""


def outcome_of(error: ApiError | ConnectionError) -> ActionOutcome:
    """What the answer to a resize says of the pod. That of an overloaded server or of a pod that changed meanwhile says
    nothing, nor does a connection that failed.
    """
    if not isinstance(error, ApiError) or error.code in (CONFLICT, TOO_MANY) or error.code >= SERVER_ERROR:
        return ActionOutcome.UNKNOWN
    causes = msgspec.convert(error.details.get("causes") or [], list[_Cause])
    full = error.code == FORBIDDEN and any(cause.reason == _NODE_CAPACITY for cause in causes)
    return ActionOutcome.NO_CAPACITY if full else ActionOutcome.REFUSED


class Deed(Enum):
    RESIZED = "resized"
    EVICTED = "evicted"
    LEFT = "left"


class Verdict(msgspec.Struct, frozen=True):
    """What a run did to one pod; `reason` says why it was left, and is empty otherwise."""

    pod: Pod
    deed: Deed
    reason: str = ""


class Tally(msgspec.Struct):
    """How many pods a run found to be evicted, and resized; by condition why others are not as recommended; and a
    verdict for each pod that it looked at, in the order of its view.
    """

    evictable: int = 0
    resizable: int = 0
    verdicts: tuple[Verdict, ...] = ()
    conditions: dict[str, str] = msgspec.field(default_factory=dict)


class EvictPod(msgspec.Struct, frozen=True):
    pod: Pod


class ResizePod(msgspec.Struct, frozen=True):
    """Patch the pod with `guards`, its subresource `resize` with `resources`, then, when that is done, the pod with
    `marks`. `unboosts`: it ends a startup boost.
    """

    pod: Pod
    resources: tuple[Operation, ...]
    marks: tuple[Operation, ...]
    unboosts: bool = False
    guards: tuple[Operation, ...] = ()


class Skip(msgspec.Struct, frozen=True):
    """Say that a pod is not resized, since its node could never give it that much."""

    pod: Pod


class RememberInfeasible(msgspec.Struct, frozen=True):
    """Keep for the pod's UID what its node could not give."""

    pod: Pod
    recommendation: RecommendedPodResources


Action: TypeAlias = EvictPod | ResizePod | Skip | RememberInfeasible
Steps: TypeAlias = Generator[Action, ActionOutcome, None]
Run: TypeAlias = Generator[Action, ActionOutcome, Tally]
