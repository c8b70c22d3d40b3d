"""PodResizePending and PodResizeInProgress, as this node sees them (spec 1.1).

A condition is there only while it applies, always with status True; its removal is the signal that all is done. Its
transition time follows the reason, not the message.
"""

from collections.abc import Iterator

import msgspec

from podfit.api.core.pods import Pod, PodCondition
from podfit.core.clock import Clock
from podfit.core.times import format_time

PENDING = "PodResizePending"
IN_PROGRESS = "PodResizeInProgress"
DEFERRED = "Deferred"
INFEASIBLE = "Infeasible"
ERROR = "Error"


class Conditions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, dict[str, PodCondition]] = {PENDING: {}, IN_PROGRESS: {}}

    def of(self, uid: str) -> tuple[PodCondition, ...]:
        """Those of one pod, Pending first."""
        return tuple(held[uid] for held in self._held.values() if uid in held)

    def get(self, kind: str, uid: str) -> PodCondition | None:
        return self._held[kind].get(uid)

    def count(self, kind: str, reason: str | None = None) -> int:
        return sum(reason is None or each.reason == reason for each in self._held[kind].values())

    def set(self, kind: str, uid: str, reason: str = "", message: str = "", *, generation: int) -> PodCondition | None:
        """Write the condition; answers what was there before."""
        before, now = self._held[kind].get(uid), format_time(self._clock.now())
        same_reason = before is not None and before.reason == reason
        self._held[kind][uid] = PodCondition(
            type=kind, status="True", reason=reason, message=message, observed_generation=generation,
            last_probe_time=now, last_transition_time=before.last_transition_time if before and same_reason else now,
        )  # fmt: skip
        return before

    def probed(self, kind: str, uid: str) -> None:
        """Looked at again, nothing new."""
        held = self._held[kind][uid]
        self._held[kind][uid] = msgspec.structs.replace(held, last_probe_time=format_time(self._clock.now()))

    def clear(self, kind: str, uid: str) -> PodCondition | None:
        """Remove the condition; answers what it was."""
        return self._held[kind].pop(uid, None)

    def forget(self, uid: str) -> bool:
        """Remove both; whether there was one."""
        cleared = [self.clear(kind, uid) for kind in self._held]
        return cleared != [None, None]

    def adopt(self, pod: Pod) -> None:
        """Take over what the API remembers, after a restart (spec 5.3, R-169)."""
        for condition in _resize_conditions(pod):
            if pod.metadata.uid not in self._held[condition.type]:
                self.set(condition.type, pod.metadata.uid, condition.reason, condition.message,
                         generation=condition.observed_generation)


def _resize_conditions(pod: Pod) -> Iterator[PodCondition]:
    return (each for each in pod.status.conditions if each.type in (PENDING, IN_PROGRESS) and each.status == "True")
