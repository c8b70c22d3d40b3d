"""Events of the node machine: what happens to a node."""

from collections.abc import Collection, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.decide.cgroup.pod_cgroup import PodValues
from podfit.decide.pod.allocated import PodResources
from podfit.decide.resize.memory_shrink import Memory


class PodsAdded(msgspec.Struct, frozen=True):
    """New pods, to be admitted together, oldest first (R-089)."""

    pods: tuple[Pod, ...]


class PodsUpdated(msgspec.Struct, frozen=True):
    """The API's pods changed. A new desired size replaces one that waits (R-110)."""

    pods: tuple[Pod, ...]


class PodsDeleted(msgspec.Struct, frozen=True):
    """The API has these pods no more; their containers may still end. They count for nothing."""

    uids: tuple[str, ...]


class PodsRemoved(msgspec.Struct, frozen=True):
    """Nothing of these pods is left on the node (R-099)."""

    uids: tuple[str, ...]


class StatusGenerated(msgspec.Struct, frozen=True):
    """A pod's newest status: room comes free when it ended or holds less than before (R-100, R-101)."""

    uid: str
    status: PodStatus


class SourcesReady(msgspec.Struct, frozen=True):
    """Every pod of this node was added; resizes may be decided from now on (R-173)."""


class Retry(msgspec.Struct, frozen=True):
    """Room may have come free for a reason from outside; `trigger` is the metric's `retry_trigger`."""

    trigger: str


class SyncStarted(msgspec.Struct, frozen=True):
    """A sync looks at the pod. `running` names the containers that run."""

    pod: Pod
    running: Collection[str]


class Unreadable(msgspec.Struct, frozen=True):
    """The pod's cgroup could not be read; why."""

    message: str


class ActuationDue(msgspec.Struct, frozen=True):
    """A sync makes real what was allocated: `pod` is the allocated one.

    `running` are the containers that run, with the ids of their instances; `ending` those of them that are to stop
    whatever their size. `again` are the instances that end and start anew, of these or such that the runtime has lost
    track of. `cgroup` is what the pod's cgroup holds; None = there is none. `containers` is the same of containers,
    where it is not known that they hold what was actuated: after a start, and after a growth that the runtime has not
    answered.
    """

    pod: Pod
    running: Mapping[str, str]
    cgroup: PodValues | Unreadable | None
    ending: Collection[str] = ()
    again: Mapping[str, str] = msgspec.field(default_factory=dict)
    containers: Mapping[str, PodValues] = msgspec.field(default_factory=dict)


class MemoryMeasured(msgspec.Struct, frozen=True):
    """What is used of memory where limits are to be lowered; None = it is known that they may be."""

    due: ActuationDue
    usage: Memory | None


class Actuated(msgspec.Struct, frozen=True):
    """What of the pod is real from now on; the node has made a note of it."""

    uid: str
    resources: PodResources


class ActuationEnded(msgspec.Struct, frozen=True):
    """How a sync's actuation went; an empty `error` means that all was done. `outage`: the runtime did not answer."""

    pod: Pod
    error: str = ""
    outage: bool = False


Event = (
    PodsAdded
    | PodsUpdated
    | PodsDeleted
    | PodsRemoved
    | StatusGenerated
    | SourcesReady
    | Retry
    | SyncStarted
    | ActuationDue
    | MemoryMeasured
    | Actuated
    | ActuationEnded
)
