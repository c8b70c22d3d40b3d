"""Starts pods that may have crashed the kubelet one at a time, or sets them aside (`decide.pod.attempts`).

admitted before     its room is kept; its worker waits at a gate
new                 it waits to be admitted
set aside           status.reason SetAside, an event; tried again when its generation changes or it is deleted
"""

import asyncio
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerState, ContainerStateWaiting
from podfit.api.core.v1.pods.static_pods import is_static
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.core.clock import Timer
from podfit.decide.pod.attempts import AttemptVerdict, Mark, form_of
from podfit.kubelet.pods.attempts import Attempts
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.status.writer import StatusWriter
from podfit.net.supervisor import Supervisor

REASON = "SetAside"
MESSAGE = (
    "The kubelet ended twice while it worked on this pod, so the pod is not synced. "
    "It is tried again when its spec changes"
)
TRIAL_SECONDS = 30.0  # who has not ended the kubelet by then is not what ends it


class GuardedStarts:
    """`begin(uid)` is called when it is a pod's turn to be tried: the owner then calls `alone` and lets it go."""

    def __init__(
        self, context: WorkerContext, attempts: Attempts, begin: Callable[[str], None], supervisor: Supervisor
    ) -> None:
        self._context = context
        self._attempts, self._begin, self._supervisor = attempts, begin, supervisor
        self._waiting: dict[str, str] = {}  # forms by uid, in the order in which they are tried
        self._aside: dict[str, str] = {}
        self._writers: dict[str, StatusWriter] = {}
        self._timers: dict[str, Timer] = {}
        self._gates: dict[str, asyncio.Event] = {}
        self._started = False

    async def recover(self) -> None:
        """Read what the last kubelet left; before the first pod."""
        await self._attempts.recover()

    def start(self) -> None:
        """Pods are tried from now on: all others have begun."""
        self._started = True
        self._next()

    def holds(self, pod: Pod) -> bool:
        """Whether the pod has to wait for its trial, or until it changes. Tells of a pod that is set aside."""
        uid, form = pod.metadata.uid, form_of(pod)
        match self._attempts.of(uid, form):
            case AttemptVerdict.RUN:
                return False
            case AttemptVerdict.TRY_ALONE:
                self._waiting.setdefault(uid, form)
                self._next()
            case AttemptVerdict.SET_ASIDE:
                if self._aside.get(uid) != form:
                    self._aside[uid] = form
                    self._tell(pod)
        return True

    def changed(self, pod: Pod) -> None:
        """A pod that was set aside is tried again in its new form."""
        uid, form = pod.metadata.uid, form_of(pod)
        if uid in self._aside and self._aside[uid] != form:
            del self._aside[uid]
            self._waiting[uid] = form
            self._next()
        elif uid in self._waiting:
            self._waiting[uid] = form

    def is_due(self, uid: str) -> bool:
        """Whether the pod waits for its trial and nobody else is being tried."""
        return uid in self._waiting and not self._attempts.busy

    def gate(self, uid: str) -> asyncio.Event:
        """Set once the pod may be worked on, or is gone; it is not shut again. Who will wait at it has to take it
        before the pod can be forgotten: afterwards the same UID would have another one, which nobody sets.
        """
        return self._gates.setdefault(uid, asyncio.Event())

    def begin(self, pods: Iterable[Pod]) -> None:
        """Work on pods that are free to run is about to begin. `durable` waits for the disk."""
        pods = tuple(pods)
        self._attempts.begin((pod.metadata.uid, form_of(pod)) for pod in pods)
        for pod in pods:
            self._limit(pod.metadata.uid)

    async def alone(self, uid: str) -> None:
        """Work on one pod is about to begin, and on no other."""
        writer = self._writers.pop(uid, None)
        if writer is not None:
            writer.close()
        self._attempts.begin([(uid, self._waiting.pop(uid, ""))], Mark.ALONE)
        await self._attempts.durable()
        self._limit(uid)

    async def durable(self) -> None:
        await self._attempts.durable()

    def done(self, uid: str) -> None:
        """A turn of the pod is over."""
        if self._attempts.has_begun(uid):
            self._attempts.done(uid)
            self._stop_timer(uid)
            self._next()

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._waiting.pop(uid, None)
        self._aside.pop(uid, None)
        writer = self._writers.pop(uid, None)
        if writer is not None:
            writer.close()
        self._attempts.done(uid)
        self._stop_timer(uid)
        gate = self._gates.pop(uid, None)
        if gate is not None:
            gate.set()
        self._next()

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        await self._attempts.close()

    def _next(self) -> None:
        if self._started and self._waiting and not self._attempts.busy:
            self._begin(next(iter(self._waiting)))

    def _limit(self, uid: str) -> None:
        self._stop_timer(uid)
        self._timers[uid] = self._context.clock.call_later(TRIAL_SECONDS, lambda: self.done(uid))

    def _stop_timer(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def _tell(self, pod: Pod) -> None:
        self._context.emit(pod, "Warning", REASON, MESSAGE, "")
        if is_static(pod):  # the API has an image of it, which says nothing
            return
        context = self._context
        writer = StatusWriter(context.client, pod, clock=context.clock, supervisor=self._supervisor)
        writer.set(_status(pod))
        self._writers[pod.metadata.uid] = writer


def _status(pod: Pod) -> PodStatus:
    """kubectl shows why a container waits before why its pod does."""
    waits = ContainerState(waiting=ContainerStateWaiting(reason=REASON, message=MESSAGE))
    shown = {
        kind: tuple(replace(status, state=waits) if status.state.waiting is not None else status for status in statuses)
        for kind, statuses in (
            ("container_statuses", pod.status.container_statuses),
            ("init_container_statuses", pod.status.init_container_statuses),
        )
    }
    return replace(pod.status, reason=REASON, message=MESSAGE, **shown)
