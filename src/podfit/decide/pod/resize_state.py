"""What a pod's resize stands for, as its node reports it: the only reader of the conditions of a resize.

Scheduler, quota, kubelet, VPA, room, `plan`, `why`, legacy clients and tests ask `ResizeState.of(pod)`, so that none of
them can take a pod for infeasible that another takes for granted. It is here and not in `decide.resize` because
`requests`, which counts a pod, needs it and is below.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Self

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.core.times import parse_time

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
DEFERRED, INFEASIBLE, ERROR = "Deferred", "Infeasible", "Error"
CONDITIONS = (PENDING, IN_PROGRESS)
BURST = "podfit.dev/Burst"
"""True while the node has moved a limit away from the spec (docs/burst.md)."""

FIELD = {DEFERRED: (PENDING, DEFERRED), INFEASIBLE: (PENDING, INFEASIBLE), "InProgress": (IN_PROGRESS, "")}
"""What nodes up to 1.32 write into `status.resize`: type and reason of the condition that says the same today."""

_SHORTAGE = "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"
_SHORTAGE_PATTERN = re.compile(re.escape(_SHORTAGE).replace(r"\{\}", "([^ ,]+)", 1).replace(r"\{\}", r"(\d{1,30})"))


class ResizeStage(Enum):
    NONE = "None"
    PROPOSED = "Proposed"
    """The node has said something, but of an older spec: it has yet to judge what is desired now."""
    DEFERRED = "Deferred"
    INFEASIBLE = "Infeasible"
    IN_PROGRESS = "InProgress"
    ERROR = "Error"
    UNKNOWN = "Unknown"
    """A reason that no release is known to write."""


class Shortage(msgspec.Struct, frozen=True):
    """The first resource that is short for a deferred resize, in milli-CPUs, bytes or pieces.

    `str()` is the message of the condition, upstream's too, and `of_message` reads it back (spec: general predicate).
    """

    name: str
    requested: int
    used: int
    capacity: int

    def __str__(self) -> str:
        return _SHORTAGE.format(self.name, self.requested, self.used, self.capacity)

    @property
    def short_by(self) -> int:
        return self.requested + self.used - self.capacity

    @classmethod
    def of_message(cls, message: str) -> Self | None:
        """None when the message tells of something else than missing room."""
        match = _SHORTAGE_PATTERN.match(message)
        return cls(match[1], *map(int, match.groups()[1:])) if match else None


class ResizeState(msgspec.Struct, frozen=True):
    """The two conditions of a pod, those that hold. Both may: an older resize is carried out while a newer one waits.

    `overtaken` says that the node wrote `pending` about another desired size than today's: its generation is not the
    spec's, and the node has not reported a look at the present spec either. Once it has (`status.observedGeneration`),
    a condition that it lets stand is about today's size: a new image does not make the node judge again. A writer
    that gives no generation, as before 1.34, is believed.

    An overtaken one is nobody's verdict on what is desired now (PQ-5). So scheduler and quota count the desired size;
    upstream counts what is held, and a larger request passes uncharged. The updater waits for the verdict; upstream
    evicts at once (V-101). `plan` and `why` say that it was not seen, and the node tries it (R-112).
    """

    pending: PodCondition | None = None
    progress: PodCondition | None = None
    overtaken: bool = False

    @classmethod
    def of(cls, pod: Pod) -> "ResizeState":
        return cls.told(pod.status.conditions, pod)

    @classmethod
    def by_field(cls, pod: Pod) -> "ResizeState":
        """From `status.resize`, which was all that a node told before 1.33; nothing clears it on a later one."""
        word = pod.status.resize
        if not word:
            return _NONE
        kind, reason = FIELD.get(word, (PENDING, word))
        told = cls.told((PodCondition(type=kind, status="True", reason=reason),), pod)
        return replace(told, overtaken=word == ResizeStage.PROPOSED.value)

    @classmethod
    def told(cls, conditions: Iterable[PodCondition], pod: Pod) -> "ResizeState":
        """What these conditions stand for instead of the pod's own. The first of each type counts, and only with status
        True."""
        pending = progress = None
        for condition in conditions:
            kind = condition.type
            if kind == PENDING:
                pending = pending or condition
            elif kind == IN_PROGRESS:
                progress = progress or condition
        if pending is None and progress is None:
            return _NONE
        pending = pending if pending is not None and pending.status == "True" else None
        progress = progress if progress is not None and progress.status == "True" else None
        generation = pod.metadata.generation
        overtaken = (
            pending is not None
            and pending.observed_generation not in (0, generation)
            and pod.status.observed_generation < generation
        )
        return cls(pending, progress, overtaken)

    @property
    def stage(self) -> ResizeStage:
        """The stage of what is desired now. What waits speaks before what is under way."""
        return ResizeStage.PROPOSED if self.overtaken else self.last_stage

    @property
    def last_stage(self) -> ResizeStage:
        """The stage of what the node last judged, whichever generation that was: upstream's reading."""
        if self.pending is not None:
            return {DEFERRED: ResizeStage.DEFERRED, INFEASIBLE: ResizeStage.INFEASIBLE}.get(
                self.pending.reason, ResizeStage.UNKNOWN
            )
        if self.progress is None:
            return ResizeStage.NONE
        if self.progress.reason == ERROR:
            return ResizeStage.ERROR
        return ResizeStage.UNKNOWN if self.progress.reason or self.progress.message else ResizeStage.IN_PROGRESS

    @property
    def infeasible(self) -> bool:
        """Whether the node refused the desired size for good, so that it will not happen."""
        return self.pending is not None and not self.overtaken and self.pending.reason == INFEASIBLE

    @property
    def condition(self) -> PodCondition | None:
        """The one that `last_stage` is read from."""
        return self.pending or self.progress

    @property
    def generation(self) -> int:
        """The generation of the spec that the node judged; 0 when it did not say."""
        return self.condition.observed_generation if self.condition else 0

    @property
    def message(self) -> str:
        return self.condition.message if self.condition else ""

    @property
    def error(self) -> str:
        """Why the resize fails that is being carried out; empty when none does."""
        return self.progress.message if self.progress is not None and self.progress.reason == ERROR else ""

    @property
    def waits_since(self) -> datetime | None:
        """When its node first said, with this reason, that the resize waits."""
        since = self.pending.last_transition_time if self.pending else None
        return parse_time(since) if since else None

    @property
    def shortage(self) -> Shortage | None:
        """What is short for what is desired now; None unless it is deferred for missing room."""
        return Shortage.of_message(self.message) if self.stage is ResizeStage.DEFERRED else None


_NONE = ResizeState()
