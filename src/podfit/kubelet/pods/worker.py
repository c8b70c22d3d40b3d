"""The pod worker: one task for each pod, which syncs it whenever something about it changed.

    update, wake ──▶ dirty ──▶ turn: sync, or stop and delete ──▶ wait for the next reason, or for a timer
                                 ▲ interrupted when the pod is to end, or to end sooner

However often a pod is woken during a turn, one turn follows.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.static_pods import is_static
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.core.backoff import Backoff
from podfit.core.clock import Timer
from podfit.core.errors import ApiError
from podfit.core.times import parse_time
from podfit.decide.node.critical import DISRUPTED, PREEMPTED, PREEMPTING
from podfit.decide.pod.lifecycle.backoff import OUTAGE_SECONDS, RETRY_SECONDS
from podfit.decide.pod.lifecycle.conditions import keeping_foreign
from podfit.decide.pod.lifecycle.facts import Failure, PodFacts
from podfit.kubelet.cgroup.protocol import CgroupError
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.pods.reporter import Reporter
from podfit.kubelet.pods.sync import RESYNC_SECONDS, UNWRITTEN_RESYNC_SECONDS, PodSync
from podfit.kubelet.pods.terminator import PodEnd
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError, Unavailable
from podfit.kubelet.status.writer import MirrorWriter, StatusWriter
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

DEADLINE = "DeadlineExceeded"
TOO_LONG = "Pod was active on the node longer than the specified deadline"


class PodWorker:
    """`run` returns once nothing of the pod is left and its API object is gone. `tried` is called after each turn."""

    def __init__(self, context: WorkerContext, pod: Pod, *, tried: Callable[[], None]) -> None:
        self.pod = pod
        self._context, self._tried = context, tried
        self.supervisor = Supervisor(f"pod {pod.metadata.name}")
        writer = MirrorWriter if is_static(pod) else StatusWriter
        self._writer = writer(
            context.client,
            pod,
            clock=context.clock,
            supervisor=self.supervisor,
            passing_seconds=context.config.passing_seconds,
        )
        self._reporter = Reporter(context, self._writer, first_seen=context.clock.monotonic())
        self._sync = PodSync(context, self._reporter)
        self._end = PodEnd(context, self._reporter)
        self._gone = False
        self._over = has_ended(pod)
        self._stopped = False
        self._deleted = False
        self._dirty = asyncio.Event()
        self._resized = False  # a resize was decided that no turn has begun with yet
        self._dirty.set()
        self._turn: asyncio.Task[float | None] | None = None
        self._early: asyncio.Task[PodFacts] | None = None
        self._timer: Timer | None = None
        self._failures = Backoff(1.0, RETRY_SECONDS, context.client.random)
        self._began: float | None = None  # on the monotonic clock: the time of day may be set meanwhile

    @property
    def status(self) -> PodStatus:
        """What is told of it, written or not."""
        return self._writer.status

    @property
    def active(self) -> bool:
        """Whether it takes part in the QoS tiers."""
        return not self._stopped and not has_ended(self.pod)

    def reject(self, reason: str, message: str) -> None:
        """The node has no room for it: it fails without having begun."""
        self._reporter.rejected(self.pod, reason, message)
        self._over = True

    def preempt(self) -> None:
        """It has to end for a critical pod, and fails. One that has come to its end by itself does not (R-117)."""
        self.fail(Failure(PREEMPTING, PREEMPTED, disruption=DISRUPTED))

    def fail(self, failure: Failure) -> None:
        """The node ends it, unless it ends already."""
        if not self._ending:
            self._reporter.failure = failure
            self._over = True
            self._interrupt()
            self._dirty.set()

    def update(self, pod: Pod, *, quiet: bool) -> None:
        """The API's pod changed; `quiet`: in nothing but its status, where only what others write is news. One that is
        to end, or to end sooner, interrupts what is going on.
        """
        before, self.pod = self.pod, pod
        self._writer.seen(pod)
        if quiet and keeping_foreign(before.status, pod.status) is before.status:
            return
        if _urgency(pod) != _urgency(before) and not self._deleted:
            self._interrupt()
        self._dirty.set()

    def shown(self, mirror: Pod | None) -> None:
        """What the API has of this static pod."""
        if isinstance(self._writer, MirrorWriter):
            self._writer.shown(mirror)

    def gone(self) -> None:
        """The API object, or the file of a static pod, does not exist any more."""
        self._gone = True
        if not self._deleted:
            self._interrupt()
        self._dirty.set()

    def wake(self) -> None:
        """Something happened in the runtime: what was asked before does not count."""
        self._forget_early()
        self._dirty.set()

    def listed(self, states: Mapping[str, str]) -> None:
        """The runtime lists these states, by id of sandbox or container: news, unless the worker has seen them and all
        is as it should be."""
        if self._reporter.is_open or not self._sync.saw(states):
            self.wake()

    def look_ahead(self) -> None:
        """A turn will follow in a moment: ask the runtime already, if nobody is changing anything there."""
        if self._turn is None and not self._dirty.is_set() and not self._ending:
            self._forget_early()
            self._early = self.supervisor.hold(self._sync.look(self.pod), name=f"look {self.pod.metadata.name}")
            self._early.add_done_callback(lambda done: done.cancelled() or done.exception())

    def go_first(self) -> None:
        """Take a turn, and delay events until it is over. A turn under way does not count, as it may have looked at
        the old size. A pod that ends is not resized.
        """
        if not self._ending:
            self._context.event_delay.begin(self.pod.metadata.uid)
            self._resized = True
        self._dirty.set()

    async def run(self) -> None:
        try:
            while not (self._deleted and self._gone):
                await self._dirty.wait()
                self._dirty.clear()
                self._resized = False
                await self._one_turn()
        finally:
            self._context.event_delay.end(self.pod.metadata.uid)
            self._forget_early()
            self._cancel_timer()
            self._writer.close()
            await self.supervisor.stop()

    async def _one_turn(self) -> None:
        self._cancel_timer()
        began = self._context.clock.monotonic()
        self._turn = self.supervisor.hold(self._guarded(), name=f"pod {self.pod.metadata.name}")
        await asyncio.wait({self._turn})
        self._tried()
        if not self._resized:
            self._context.event_delay.end(self.pod.metadata.uid)
        turn, self._turn = self._turn, None
        if not turn.cancelled():
            again = turn.result()
            if again is not None:
                self._timer = self._context.clock.call_later(again, self._dirty.set)
        kind = "terminate" if self._ending else "sync"
        self._context.metrics.turn.labels(kind).observe(self._context.clock.monotonic() - began)

    @property
    def _ending(self) -> bool:
        return self._gone or self._over or self.pod.metadata.deletion_timestamp is not None

    async def _guarded(self) -> float | None:
        """Seconds until the next turn; None when only news brings one."""
        try:
            again = await self._step()
        except (CRIError, CgroupError, CheckpointError, ApiError, OSError) as error:
            delay = self._failures.next() if self._ending else self._context.jittered(_patience(error))
            log.warning("pod turn failed pod=%s retry_seconds=%.1f error=%s", labels.ref(self.pod), delay, error)
            return delay
        except Exception:
            log.exception("pod turn failed pod=%s", labels.ref(self.pod))
            return self._context.jittered(RETRY_SECONDS)
        self._failures.reset()
        return again

    async def _step(self) -> float | None:
        left = self._seconds_left()
        if left is not None and left <= 0 and not self._ending:
            self._context.emit(self.pod, "Normal", DEADLINE, TOO_LONG, "")
            self._reporter.failure, self._over = Failure(DEADLINE, TOO_LONG), True
        if self._ending:
            await self._finish()
            return None
        early, self._early = self._early, None
        turn = await self._sync.turn(lambda: self.pod, early or self._sync.look(self.pod))
        if turn.over:
            self._over = True
            await self._finish()
            return None
        resync = RESYNC_SECONDS if self._context.volumes.refreshed else UNWRITTEN_RESYNC_SECONDS
        waits = (self._context.jittered(resync), turn.again, self._seconds_left())
        return min(max(0.0, wait) for wait in waits if wait is not None)

    def _seconds_left(self) -> float | None:
        """Until the pod has been active for as long as it may be; None when there is no such limit."""
        started, allowed = self._writer.status.start_time, self.pod.spec.active_deadline_seconds
        clock = self._context.clock
        if not started:
            return None
        if self._began is None:
            self._began = clock.monotonic() - max(0.0, (clock.now() - parse_time(started)).total_seconds())
        return None if allowed is None else self._began + allowed - clock.monotonic()

    async def _finish(self) -> None:
        self._context.event_delay.end(self.pod.metadata.uid)
        pod, gone = self.pod, self._gone
        if not self._stopped:
            await self._end.stop(pod, gone=gone)
            self._stopped = True
        if (gone or pod.metadata.deletion_timestamp is not None) and not self._deleted:
            await self._end.delete(pod, gone=gone)
            self._deleted = True

    def _forget_early(self) -> None:
        if self._early is not None:
            self._early.cancel()
            self._early = None

    def _interrupt(self) -> None:
        if self._turn is not None:
            self._turn.cancel()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _patience(error: Exception) -> float:
    return OUTAGE_SECONDS if isinstance(error, Unavailable) else RETRY_SECONDS


def _urgency(pod: Pod) -> tuple[bool, int | None]:
    return pod.metadata.deletion_timestamp is not None, pod.metadata.deletion_grace_period_seconds
