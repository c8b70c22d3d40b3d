"""The conditions PodResizePending and PodResizeInProgress (R-094 to R-098, R-121, R-146).

A condition is there only while it applies, always with status True; its removal says that all is done. Its transition
time follows the reason, not the message.
"""

from datetime import datetime

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.core.shared_map import SharedMap
from podfit.core.times import format_time
from podfit.decide.pod.resize_state import CONDITIONS, IN_PROGRESS, PENDING, ResizeState

ByUid = SharedMap[str, PodCondition]


class Conditions(msgspec.Struct, frozen=True):
    """The conditions of the node's resizes, by pod UID."""

    pending: ByUid = msgspec.field(default_factory=SharedMap)
    in_progress: ByUid = msgspec.field(default_factory=SharedMap)

    def of(self, uid: str) -> tuple[PodCondition, ...]:
        """Those of one pod, PodResizePending first."""
        return tuple(by_uid[uid] for by_uid in (self.pending, self.in_progress) if uid in by_uid)

    def resize_state(self, pod: Pod) -> ResizeState:
        """What the pod's resize stands for by these conditions; those in its status may be older."""
        return ResizeState.told(self.of(pod.metadata.uid), pod)

    def get(self, kind: str, uid: str) -> PodCondition | None:
        return self._all(kind).get(uid)

    def count(self, kind: str, reason: str | None = None) -> int:
        return sum(reason is None or condition.reason == reason for condition in self._all(kind).values())

    def set(
        self, kind: str, uid: str, reason: str = "", message: str = "", *, generation: int, now: datetime
    ) -> "Conditions":
        before, probed = self.get(kind, uid), format_time(now)
        changed = before.last_transition_time if before is not None and before.reason == reason else probed
        condition = PodCondition(
            type=kind,
            status="True",
            reason=reason,
            message=message,
            observed_generation=generation,
            last_probe_time=probed,
            last_transition_time=changed,
        )
        return self._with(kind, self._all(kind).set(uid, condition))

    def probed(self, kind: str, uid: str, *, now: datetime) -> "Conditions":
        """The condition was looked at again and nothing changed."""
        condition = replace(self._all(kind)[uid], last_probe_time=format_time(now))
        return self._with(kind, self._all(kind).set(uid, condition))

    def clear(self, kind: str, uid: str) -> "Conditions":
        before = self._all(kind)
        after = before.without([uid])
        return self if after is before else self._with(kind, after)

    def forget(self, uid: str) -> "Conditions":
        return self.clear(PENDING, uid).clear(IN_PROGRESS, uid)

    def adopt(self, pod: Pod) -> "Conditions":
        """Take over what the API remembers of a pod, with the times, after a restart of the kubelet (R-169)."""
        adopted, uid = self, pod.metadata.uid
        for condition in pod.status.conditions:
            known = condition.type in CONDITIONS and condition.status == "True"
            if known and adopted.get(condition.type, uid) is None:
                adopted = adopted._with(condition.type, adopted._all(condition.type).set(uid, condition))
        return adopted

    def _all(self, kind: str) -> ByUid:
        return self.pending if kind == PENDING else self.in_progress

    def _with(self, kind: str, by_uid: ByUid) -> "Conditions":
        return replace(self, pending=by_uid) if kind == PENDING else replace(self, in_progress=by_uid)
