"""Turns decisions into what the world sees of them: conditions, events, metrics, and the sync that acts.

Deciding is pure and knows nothing of this; everything in here happens after the decision is on disk.
"""

from collections.abc import Callable
from typing import TypeAlias

from podfit.api.core.pods import Pod
from podfit.decide.critical import PREEMPTED, PREEMPTING, Preempts
from podfit.decide.fit import Deferred, Infeasible
from podfit.kubelet.allocation.conditions import DEFERRED, ERROR, IN_PROGRESS, INFEASIBLE, PENDING, Conditions
from podfit.kubelet.allocation.events import NORMAL, WARNING, details
from podfit.kubelet.allocation.metrics import ResizeMetrics

Emit: TypeAlias = Callable[[Pod, str, str, str], None]
"""Record an event: pod, type, reason, message."""
Sync: TypeAlias = Callable[[str, str], None]
"""Sync the pod of this UID now; the second argument is the trigger."""
End: TypeAlias = Callable[[str], None]
"""Have the pod of this UID end for a critical one."""


class Announcer:
    def __init__(self, conditions: Conditions, metrics: ResizeMetrics, emit: Emit, sync: Sync, end: End) -> None:
        self._conditions, self._metrics, self._emit, self._sync, self._end = conditions, metrics, emit, sync, end

    def granted(self, pod: Pod, trigger: str, *, active: bool) -> None:
        """The desired `pod` is the allocated one now. One that is over has nothing in progress (R-094, R-095)."""
        uid, generation = pod.metadata.uid, pod.metadata.generation
        before = self._conditions.clear(PENDING, uid)
        self._conditions.clear(IN_PROGRESS, uid)
        if active:
            self._conditions.set(IN_PROGRESS, uid, generation=generation)
        self._emit(pod, NORMAL, "ResizeStarted", f"Pod resize started: {details(pod, generation=generation)}")
        if before is not None and before.reason == DEFERRED:
            self._metrics.deferred_accepted.labels(trigger).inc()
        self._sync(uid, trigger)

    def refused(self, pod: Pod, verdict: Deferred | Infeasible, trigger: str, *, active: bool) -> None:
        """Set Pending, but for a pod that is over (R-176).

        One event for each generation and reason, however often it is tried (R-098).
        """
        uid, generation = pod.metadata.uid, pod.metadata.generation
        kind = DEFERRED if isinstance(verdict, Deferred) else INFEASIBLE
        if isinstance(verdict, Infeasible):
            self._metrics.infeasible.labels(verdict.detail).inc()
        before = None
        if active:
            before = self._conditions.set(PENDING, uid, kind, verdict.message, generation=generation)
        is_news = before is None or (before.reason, before.observed_generation) != (kind, generation)
        if is_news:
            text = details(pod, generation=generation, error=verdict.message)
            self._emit(pod, WARNING, f"Resize{kind}", f"Pod resize {verdict.reason}: {text}")
        if is_news or (before is not None and before.message != verdict.message):
            self._sync(uid, trigger)

    def preempts(self, preempts: Preempts) -> None:
        """These have to end for a critical pod (R-117)."""
        for victim in preempts.victims:
            self._emit(victim, WARNING, PREEMPTING, PREEMPTED)
            self._metrics.preemptions.labels(preempts.signal).inc()
            self._end(victim.metadata.uid)

    def settled(self, pod: Pod, trigger: str) -> None:
        """Nothing is pending any more: the desire was taken back (R-111)."""
        if self._conditions.clear(PENDING, pod.metadata.uid) is not None:
            self._sync(pod.metadata.uid, trigger)

    def progress(self, pod: Pod, allocated: Pod, *, ongoing: bool) -> None:
        """PodResizeInProgress comes, stays, or goes with ResizeCompleted (R-146)."""
        uid = pod.metadata.uid
        if not ongoing:
            if done := self._conditions.clear(IN_PROGRESS, uid):
                text = details(allocated, generation=done.observed_generation)
                self._emit(pod, NORMAL, "ResizeCompleted", f"Pod resize completed: {text}")
        elif self._conditions.get(IN_PROGRESS, uid) is None:
            self._conditions.set(IN_PROGRESS, uid, generation=pod.metadata.generation)
        else:
            self._conditions.probed(IN_PROGRESS, uid)

    def failed(self, pod: Pod, allocated: Pod, error: str) -> None:
        """The actuation stopped; one event while the text is the same. The generation stays (R-121, R-141)."""
        uid = pod.metadata.uid
        before = self._conditions.get(IN_PROGRESS, uid)
        generation = before.observed_generation if before else pod.metadata.generation
        self._conditions.set(IN_PROGRESS, uid, ERROR, error, generation=generation)
        if before is None or (before.reason, before.message) != (ERROR, error):
            text = details(allocated, generation=generation, error=error)
            self._emit(pod, WARNING, "ResizeError", f"Pod resize error: {text}")
