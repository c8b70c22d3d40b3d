"""What happens to a pod: from outside at any time, and what came of an effect."""

import enum

import msgspec

from podfit.api.core.v1.pods.types import Pod, PodCondition, PodStatus
from podfit.decide.lifecycle.container_statuses import POST_START_ERROR
from podfit.decide.lifecycle.facts import Failure, PodFacts, StatusInput
from podfit.decide.lifecycle.pulls import Refuse

# ---------------------------------------------------------------- from outside


class Rejected(msgspec.Struct, frozen=True):
    """The node has no room for it: it fails without having begun."""

    reason: str
    message: str


class EndWanted(msgspec.Struct, frozen=True):
    """The node ends it, unless it ends already."""

    failure: Failure


class PodChanged(msgspec.Struct, frozen=True):
    """The API's pod; its deletion is one of the changes. `quiet`: in nothing but its status."""

    pod: Pod
    quiet: bool = False


class ObjectGone(msgspec.Struct, frozen=True):
    """The API object, or the file of a static pod, does not exist any more."""


class ResizeLasts(msgspec.Struct, frozen=True):
    """What was resized at once is not done yet; what its status is made from."""

    inputs: StatusInput


# ---------------------------------------------------------------- a turn


class AtRest(msgspec.Struct, frozen=True):
    """A pod of which nothing is news but its size: the allocated one, and the conditions of its resize."""

    allocated: Pod
    conditions: tuple[PodCondition, ...]


class TurnBegan(msgspec.Struct, frozen=True):
    """`status` is the one last told, or what the API has. `at_rest`: the runtime need not be looked at first."""

    status: PodStatus
    at_rest: AtRest | None = None


class TurnFailed(msgspec.Struct, frozen=True):
    """An effect could not be carried out. `outage`: the runtime did not answer; `sandbox`: it was RunSandbox."""

    error: str
    outage: bool = False
    sandbox: bool = False


class CarriedOut(msgspec.Struct, frozen=True):
    """All effects of the step were."""


class Looked(msgspec.Struct, frozen=True):
    """`unchanged` is the allocated pod where all is as `Rest` left it, and nothing is open."""

    facts: PodFacts
    unchanged: Pod | None = None


class Gathered(msgspec.Struct, frozen=True):
    """What the machine knows itself (`waiting`, `ended`, `failure`) is left blank. `cgroup`: the pod's is there."""

    inputs: StatusInput
    cgroup: bool = True


class Mounted(msgspec.Struct, frozen=True):
    pass


class MountFailed(msgspec.Struct, frozen=True):
    message: str


class CgroupReady(msgspec.Struct, frozen=True):
    """`made`: it was missing, though it was there a moment ago."""

    made: bool


class ResizeEnded(msgspec.Struct, frozen=True):
    """`again`: it failed, and is to be tried anew after about so many seconds. `changed`: a step was taken. `replaced`
    have stopped, to start at their new size. `open`: the resize has conditions still, so it is looked at again.
    """

    again: float | None = None
    changed: bool = False
    replaced: tuple[str, ...] = ()
    open: bool = False


class ContainerStarted(msgspec.Struct, frozen=True):
    name: str


class ImageRefused(msgspec.Struct, frozen=True):
    """The container waits for its image, as `pulls` says."""

    name: str
    refusal: Refuse


class StartStage(enum.Enum):
    """How far a start came. The value is the reason for which its container waits."""

    CONFIGURE = "CreateContainerConfigError"  # a missing ConfigMap or key, a forbidden user, a bad sub-path
    CREATE = "CreateContainerError"
    START = "RunContainerError"  # such as a command that does not exist
    POST_START = POST_START_ERROR  # its hook failed


class StartFailed(msgspec.Struct, frozen=True):
    """`outage`: the runtime did not answer. `instance` is the id of the one that runs, where its hook failed."""

    name: str
    stage: StartStage
    error: str
    outage: bool = False
    instance: str = ""


Outside = Rejected | EndWanted | PodChanged | ObjectGone | ResizeLasts
Event = (
    Outside
    | TurnBegan
    | TurnFailed
    | CarriedOut
    | Looked
    | Gathered
    | Mounted
    | MountFailed
    | CgroupReady
    | ResizeEnded
    | ContainerStarted
    | ImageRefused
    | StartFailed
)
