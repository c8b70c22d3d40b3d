"""Effects of the node machine, carried out by the shell in their order.

`Release` needs no durability. `Persist` comes before every effect that follows from it: when it fails, nothing of the
step is true, and the caller takes the step again with `unsaved`.
"""

from collections.abc import Collection, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.managers.cpu import CpuState
from podfit.decide.managers.memory import MemoryState
from podfit.decide.node.critical import Preempts
from podfit.decide.node.events import ActuationDue
from podfit.decide.pod.allocated import PodResources
from podfit.decide.resize.memory_shrink import Memory
from podfit.decide.resize.steps import Step


class Release(msgspec.Struct, frozen=True):
    """Give back the CPUs and the memory that were set aside for these pods."""

    uids: tuple[str, ...]


class Persist(msgspec.Struct, frozen=True):
    """Make these allocations durable, and with them the CPUs and the memory that are set aside."""

    allocations: Mapping[str, PodResources]
    cpus: CpuState | None = None
    memory: MemoryState | None = None


class Grow(msgspec.Struct, frozen=True):
    """These pods, at their new sizes, may be larger now: write what grows before anything else is done (
    `decide.resize.steps.growth`). Their syncs follow.
    """

    pods: tuple[Pod, ...]


class Forget(msgspec.Struct, frozen=True):
    """Drop the allocations of pods that are gone; durable with the next `Persist`."""

    uids: tuple[str, ...]


class Admitted(msgspec.Struct, frozen=True):
    """Run the pod. `pod` is the allocated one."""

    pod: Pod


class Rejected(msgspec.Struct, frozen=True):
    """The pod goes to phase Failed with this reason and `Pod was rejected: ` + message."""

    pod: Pod
    reason: str
    message: str


class Unsaved(msgspec.Struct, frozen=True):
    """There is room, but the allocation could not be persisted; `message` says why. The pod was not taken in."""

    pod: Pod
    message: str


class Preempting(msgspec.Struct, frozen=True):
    """A critical pod that is not taken in yet: others are to end first, or are ending already."""

    pod: Pod
    preempts: Preempts


Answer = Admitted | Rejected | Unsaved | Preempting
"""One for each pod of `PodsAdded`, oldest first."""


class RecordEvent(msgspec.Struct, frozen=True):
    """Record an event about the pod; `type` is Normal or Warning."""

    pod: Pod
    type: str
    reason: str
    message: str


class Sync(msgspec.Struct, frozen=True):
    """Sync the pod of this UID now; one that waits for admission is to be added again."""

    uid: str
    trigger: str


class End(msgspec.Struct, frozen=True):
    """Have the pod of this UID end for the critical one `by`."""

    uid: str
    by: str


class WakeUp(msgspec.Struct, frozen=True):
    """Send `Retry("periodic_retry")` after so many seconds; replaces an earlier one."""

    seconds: float


class Count(msgspec.Struct, frozen=True):
    """Add one to a metric of resizes: `infeasible`, `deferred_accepted` or `preemptions`, with its label's value."""

    metric: str
    label: str


class Requested(msgspec.Struct, frozen=True):
    """A resize was requested: count each request and limit that differs (R-186)."""

    old: Pod
    new: Pod


class NoteRestarts(msgspec.Struct, frozen=True):
    """Note that these instances are stopped to be started anew, by the names of their containers, and send `Actuated`.
    When the note survives the kubelet they may be stopped.
    """

    pod: Pod
    instances: Mapping[str, str]


class StopForResize(msgspec.Struct, frozen=True):
    """Stop these containers together, then send `ActuationDue` with what runs by then. Those that are `restarting` run
    on until then and are started again at their new size, as their resizePolicy wants it; `ending` is the event's.
    """

    pod: Pod
    ending: Collection[str]
    restarting: tuple[str, ...]


class MeasureMemory(msgspec.Struct, frozen=True):
    """Find out what is used where these limits are to come, and send `MemoryMeasured`. Where usage cannot be read, or
    cannot be brought below the limits, `ActuationEnded` says why.
    """

    due: ActuationDue
    limits: Memory


class Actuate(msgspec.Struct, frozen=True):
    """Do these steps in their order, until one fails; `Actuated` follows each that changes what was actuated, once that
    has been noted, and `ActuationEnded` the last.
    """

    pod: Pod
    steps: tuple[Step, ...]


class SyncAgain(msgspec.Struct, frozen=True):
    """Sync the pod of this UID after about so many seconds: what failed is tried again."""

    uid: str
    seconds: float


Effect = (
    Release
    | Persist
    | Grow
    | Forget
    | Answer
    | RecordEvent
    | Sync
    | End
    | WakeUp
    | Count
    | Requested
    | NoteRestarts
    | StopForResize
    | MeasureMemory
    | Actuate
    | SyncAgain
)
