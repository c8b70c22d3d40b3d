"""`PodLife`, what is remembered of a pod between two steps of its machine.

It is in memory alone. A kubelet that begins anew finds all that matters in the runtime, the checkpoints and the API;
what is lost with it are back-offs and why containers wait.
"""

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerStateWaiting
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.phase import ENDED
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.decide.lifecycle.actions import PodActions
from podfit.decide.lifecycle.backoff import Backoff
from podfit.decide.lifecycle.effects import Effect
from podfit.decide.lifecycle.facts import Failure, PodFacts


class Moment(msgspec.Struct, frozen=True):
    """`now` is the time of day, which may be set; `monotonic` are seconds that only ever grow."""

    now: datetime
    monotonic: float


class Stage(enum.Enum):
    """What is over for good."""

    LIVING = "living"
    STOPPED = "stopped"  # nothing of it runs, and its volumes and cgroup are gone
    DELETED = "deleted"  # nothing is left, and the API was told so


class At(enum.Enum):
    """Where in a turn the machine is: what the next look, and the status after it, are for."""

    RESIZING = "resizing"  # a pod at rest gets another size, before it is looked at
    SYNCING = "syncing"  # a round: report, then what there is to do
    CLOSING = "closing"  # the last report of a turn
    REFRESHING = "refreshing"  # the volumes, when all else is done
    ENDING = "ending"  # report that it ends, then stop its containers
    FREED = "freed"  # they have stopped: allocation hears of it, then sandboxes are stopped
    CLEANING = "cleaning"  # the final status; then volumes and cgroup go
    DELETING = "deleting"  # sandboxes, files and the object go


class Waits(msgspec.Struct, frozen=True):
    """When to look again, in seconds: exactly then, or about then."""

    exactly: float | None = None
    about: float | None = None

    def sooner(self, *, exactly: float | None = None, about: float | None = None) -> "Waits":
        return Waits(_sooner(self.exactly, exactly), _sooner(self.about, about))


def _sooner(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


NO_WAITS = Waits()


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One sync of the pod. All but `at` and `rounds` is of the round under way.

    `pod` is the allocated one with the status just made; `cgroup`: its cgroup is there. `due` are the containers to
    start, in order; those `at_once` need not wait for their back-off, since the machine stopped them itself.
    `resized`: the round was a resize in place that has worked, and nothing else.
    """

    at: At = At.SYNCING
    rounds: int = 0
    pod: Pod | None = None
    facts: PodFacts
    cgroup: bool = True
    todo: PodActions = PodActions()
    due: tuple[Container, ...] = ()
    at_once: frozenset[str] = frozenset()
    progress: bool = False
    resized: bool = False
    open: bool = False
    waits: Waits = NO_WAITS


class NotStarted(msgspec.Struct, frozen=True):
    """An instance that could not be started is not replaced before `until`, on the monotonic clock: seeing it go would
    begin another turn.
    """

    waiting: ContainerStateWaiting
    until: float


class PodLife(msgspec.Struct, frozen=True, kw_only=True):
    """`pod` is the API's, `told` the status last made or what the API has.

    `over`: nothing of it will run again. `failure` says why, when it was ended from outside. `sized` is the pod at its
    allocated size, as last seen: one that is over keeps it. `waiting` says why containers do not run, by name.
    `began` is when the pod became active, on the monotonic clock: the time of day may be set meanwhile.
    `refreshed`: the volumes are to be brought up to date; `volumes_at` and `volumes_of`: when and from what they were.
    """

    pod: Pod
    told: PodStatus
    refreshed: bool = True
    stage: Stage = Stage.LIVING
    over: bool = False
    gone: bool = False
    failure: Failure | None = None
    sized: Pod | None = None
    waiting: Mapping[str, ContainerStateWaiting] = msgspec.field(default_factory=dict)
    backoffs: Mapping[str, Backoff] = msgspec.field(default_factory=dict)
    not_started: Mapping[str, NotStarted] = msgspec.field(default_factory=dict)
    began: float | None = None
    mounted: bool = False
    mount_failures: int = 0
    volumes_at: float = 0.0
    volumes_of: tuple[object, ...] = ()
    failures: int = 0
    turn: Turn

    @property
    def ending(self) -> bool:
        return self.gone or self.over or self.pod.metadata.deletion_timestamp is not None

    @property
    def has_ended(self) -> bool:
        """Whether the pod has come to its end, as it was last told."""
        return self.told.phase in ENDED

    @property
    def was_rejected(self) -> bool:
        """Whether the node never took it in: its status tells of no container, and there is nothing to add."""
        return self.has_ended and not self.told.container_statuses

    @property
    def is_open(self) -> bool:
        """Whether something is still to come: a container that waits, or the pod's end."""
        return bool(self.waiting) or self.failure is not None or self.has_ended

    def in_turn(self, **fields: Any) -> "PodLife":
        """The life with these fields of the turn."""
        return replace(self, turn=replace(self.turn, **fields))


Step: TypeAlias = tuple[PodLife, tuple[Effect, ...]]


def after(*effects: Effect, step: Step) -> Step:
    """The step, with these effects before its own."""
    return step[0], (*effects, *step[1])
