"""What the machine asks for in a pod's life. The kubelet carries effects out in their order.

The last effect of a step has an answer, which is the next event, or it is `WakeUp`, which ends the turn. `Interrupt`
and `TakeTurn` follow from what comes from outside a turn.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.decide.lifecycle.facts import ContainerStatus, PodFacts, Sandbox


class Interrupt(msgspec.Struct, frozen=True):
    """Break off the turn under way: what it was to bring about is not wanted any more."""


class TakeTurn(msgspec.Struct, frozen=True):
    """Take another turn."""


class WakeUp(msgspec.Struct, frozen=True):
    """The turn is over. The next one comes with news, or by the first of these times, in seconds.

    `about` is lengthened by up to half at random, so that pods do not move in step; `shortened` is shortened so.
    """

    exactly: float | None = None
    about: float | None = None
    shortened: float | None = None


class Continue(msgspec.Struct, frozen=True):
    """The effects before it were carried out. Answer: `CarriedOut`."""


class Look(msgspec.Struct, frozen=True):
    """Ask the runtime what there is of the pod, and its probes too unless they are over. Answer: `Looked`."""

    probes: bool = True


class Gather(msgspec.Struct, frozen=True):
    """Ask allocation, records and cgroup for what the status is made from. Answer: `Gathered`."""

    facts: PodFacts


class Passing(Enum):
    """A status that another one is expected to follow at once, so that it need not be written unless it lasts."""

    NOT = ""
    START = "start"  # nothing of the pod runs yet
    RESIZE = "resize"  # the size that is in progress is about to be actuated


class WriteStatus(msgspec.Struct, frozen=True):
    """Have this written to the API."""

    status: PodStatus
    passing: Passing = Passing.NOT


class Reconcile(msgspec.Struct, frozen=True):
    """Allocation hears of the status before the API does, so room that came free is given away at once."""

    status: PodStatus


class Rest(msgspec.Struct, frozen=True):
    """Nothing is left to do: a look that shows the same needs no round."""


class Emit(msgspec.Struct, frozen=True):
    """Record an event about the pod; `path` names a container's field."""

    type: str
    reason: str
    message: str
    path: str = ""


class Mount(msgspec.Struct, frozen=True):
    """Mount the volumes, or bring them up to date. Answer: `Mounted`, `MountFailed`."""

    pod: Pod
    again: bool = False


class EnsureCgroup(msgspec.Struct, frozen=True):
    """Make the pod's cgroup if it is missing. Answer: `CgroupReady`."""

    pod: Pod


class RunSandbox(msgspec.Struct, frozen=True):
    pod: Pod
    attempt: int


class StopSandboxes(msgspec.Struct, frozen=True):
    """All at once; their containers are stopped before."""

    ids: tuple[str, ...]


class RemoveSandboxes(msgspec.Struct, frozen=True):
    """Remove them with all their containers."""

    ids: tuple[str, ...]


class Stop(msgspec.Struct, frozen=True):
    """One container, by its id in the runtime; `message` is of the event Killing."""

    id: str
    name: str
    message: str
    grace: int


class StopContainers(msgspec.Struct, frozen=True):
    """Group after group, those of a group at once. A later group gets what the ones before it have left of its grace
    period (`termination.remaining`).
    """

    pod: Pod
    groups: tuple[tuple[Stop, ...], ...]


class Resize(msgspec.Struct, frozen=True):
    """Stop what has to end, and make runtime and cgroups what was allocated; ids of running containers by name. Of the
    `stops` those in `again` start anew, by their ids; the runtime may have lost track of them, and they do not count as
    running. Which containers their resize restarts is the node machine's to say; `restarts` is how each would be
    stopped. Answer: `ResizeEnded`.
    """

    pod: Pod
    sandbox_id: str
    containers: Mapping[str, str]
    stops: tuple[Stop, ...]
    restarts: Mapping[str, Stop]
    again: Mapping[str, str] = msgspec.field(default_factory=dict)


class StartContainer(msgspec.Struct, frozen=True):
    """Answer: `ContainerStarted`, `ImageRefused`, `StartFailed`.

    `attempt` counts its restarts; `replaces` is the id of an instance that was created and never started. `running` are
    ids by name, whose processes an ephemeral container may see.
    """

    pod: Pod
    container: Container
    sandbox: Sandbox
    attempt: int
    replaces: str = ""
    running: Mapping[str, str] = msgspec.field(default_factory=dict)


class RemoveContainers(msgspec.Struct, frozen=True):
    """Ended instances, with their logs and messages."""

    containers: tuple[ContainerStatus, ...]


class ForgetProbes(msgspec.Struct, frozen=True):
    """Nothing of the pod runs any more."""


class RemoveVolumes(msgspec.Struct, frozen=True):
    pass


class RemoveCgroup(msgspec.Struct, frozen=True):
    pass


class AwaitWritten(msgspec.Struct, frozen=True):
    """Wait until the API has the last status."""


class ForgetFiles(msgspec.Struct, frozen=True):
    """The pod's logs, and the record of what was actuated."""


class DeleteObject(msgspec.Struct, frozen=True):
    """Delete it with grace 0 and its uid: the API was waiting for this."""


Outside = Interrupt | TakeTurn | WriteStatus
"""What may follow from an event outside a turn."""
Effect = (
    Outside
    | WakeUp
    | Continue
    | Look
    | Gather
    | Reconcile
    | Rest
    | Emit
    | Mount
    | EnsureCgroup
    | RunSandbox
    | StopSandboxes
    | RemoveSandboxes
    | StopContainers
    | Resize
    | StartContainer
    | RemoveContainers
    | ForgetProbes
    | RemoveVolumes
    | RemoveCgroup
    | AwaitWritten
    | ForgetFiles
    | DeleteObject
)
