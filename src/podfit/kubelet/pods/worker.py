"""The pod worker: one task for each pod, which feeds its machine (`decide.lifecycle`) and decides nothing.

    update, wake ──▶ dirty ──▶ turn: drive(machine, world) ──▶ wait for the next reason, or for a timer
                                 ▲ interrupted when the pod is to end, or to end sooner

However often a pod is woken during a turn, one turn follows.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.static_pods import is_static
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.core.clock import Timer
from podfit.core.errors import ApiError
from podfit.core.randomness import fraction
from podfit.decide.lifecycle.backoff import RETRY_SECONDS
from podfit.decide.lifecycle.effects import Effect, Interrupt, RunSandbox, TakeTurn, WakeUp, WriteStatus
from podfit.decide.lifecycle.events import (
    EndWanted,
    Event,
    ObjectGone,
    Outside,
    PodChanged,
    Rejected,
    TurnBegan,
    TurnFailed,
)
from podfit.decide.lifecycle.facts import Failure, PodFacts
from podfit.decide.lifecycle.life import Moment, Stage
from podfit.decide.lifecycle.machine import begin, step
from podfit.decide.node.critical import DISRUPTED, PREEMPTED, PREEMPTING
from podfit.decide.node.drive import drive
from podfit.kubelet.actuation.actuator import LivePod
from podfit.kubelet.cgroup.protocol import CgroupError
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.pods.world import PodWorld
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError, Unavailable
from podfit.kubelet.status.writer import MirrorWriter, StatusWriter
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)


class PodWorker:
    """`run` returns once nothing of the pod is left and its API object is gone. `tried` is called after each turn."""

    def __init__(self, context: WorkerContext, pod: Pod, *, tried: Callable[[], None]) -> None:
        self._context, self._tried = context, tried
        self._life = begin(pod, refreshed=context.volumes.refreshed)
        self.supervisor = Supervisor(f"pod {pod.metadata.name}")
        writer = MirrorWriter if is_static(pod) else StatusWriter
        self._writer = writer(context.client, pod, clock=context.clock, supervisor=self.supervisor)
        self._world = PodWorld(context, self._writer, lambda: self._life, self.supervisor, self._hear)
        self._dirty = asyncio.Event()
        self._resized = False  # a resize was decided that no turn has begun with yet
        self._dirty.set()
        self._settled = False  # the last turn ended with a look, and the runtime has had no news since
        self._turn: asyncio.Task[float | None] | None = None
        self._early: asyncio.Task[PodFacts] | None = None
        self._timer: Timer | None = None

    @property
    def pod(self) -> Pod:
        """The API's, as it is known now."""
        return self._life.pod

    @property
    def status(self) -> PodStatus:
        """What is told of it, written or not."""
        return self._writer.status

    @property
    def active(self) -> bool:
        """Whether it takes part in the QoS tiers."""
        return self._life.stage is Stage.LIVING and not has_ended(self.pod)

    @property
    def live(self) -> LivePod | None:
        """What ran when it last looked; None before."""
        return self._world.live

    def reject(self, reason: str, message: str) -> None:
        """The node has no room for it: it fails without having begun."""
        self._hear(Rejected(reason, message))

    def preempt(self) -> None:
        """It has to end for a critical pod, and fails. One that has come to its end by itself does not (R-117)."""
        self.fail(Failure(PREEMPTING, PREEMPTED, disruption=DISRUPTED))

    def fail(self, failure: Failure) -> None:
        """The node ends it, unless it ends already."""
        self._hear(EndWanted(failure))

    def update(self, pod: Pod, *, quiet: bool) -> None:
        """The API's pod changed; `quiet`: in nothing but its status."""
        self._writer.seen(pod)
        self._hear(PodChanged(pod, quiet))

    def shown(self, mirror: Pod | None) -> None:
        """What the API has of this static pod."""
        if isinstance(self._writer, MirrorWriter):
            self._writer.shown(mirror)

    def gone(self) -> None:
        """The API object, or the file of a static pod, does not exist any more."""
        self._hear(ObjectGone())

    def wake(self) -> None:
        """Something happened in the runtime: what was asked before does not count."""
        self._settled = False
        self._forget_early()
        self._dirty.set()

    def listed(self, states: Mapping[str, str]) -> None:
        """The runtime lists these states, by id of sandbox or container: news, unless the worker has seen them and all
        is as it should be."""
        if self._life.is_open or not self._writer.is_written or not self._world.saw(states):
            self.wake()

    def look_ahead(self) -> None:
        """A turn will follow in a moment: ask the runtime already, if nobody is changing anything there."""
        if self._turn is None and not self._dirty.is_set() and not self._life.ending:
            self._forget_early()
            self._early = self._world.look_early()

    def go_first(self) -> None:
        """Take a turn, and delay events until it is over. A turn under way does not count, as it may have looked at
        the old size. A pod that ends is not resized.
        """
        if not self._life.ending:
            self._context.event_delay.begin(self.pod.metadata.uid)
            self._resized = True
        self._dirty.set()

    async def run(self) -> None:
        try:
            while not (self._life.stage is Stage.DELETED and self._life.gone):
                await self._dirty.wait()
                if self._resized:
                    async with self._context.resize_turns.taken():
                        await self._one_turn()
                else:
                    await self._one_turn()
        finally:
            self._context.event_delay.end(self.pod.metadata.uid)
            self._forget_early()
            self._cancel_timer()
            self._writer.close()
            await self.supervisor.stop()

    async def _one_turn(self) -> None:
        self._dirty.clear()
        settled, self._settled = self._settled and self._resized, True
        self._resized = False
        self._cancel_timer()
        began = self._context.clock.monotonic()
        self._turn = self.supervisor.hold(self._guarded(settled=settled), name=f"pod {self.pod.metadata.name}")
        await asyncio.wait({self._turn})
        self._tried()
        if self._context.event_delay.holds(self.pod.metadata.uid):
            self.supervisor.begin(self._tell(), name=f"events {self.pod.metadata.name}")
        turn, self._turn = self._turn, None
        if turn.cancelled():
            self._settled = False
        else:
            again = turn.result()
            self._settled = self._settled and not self._world.tries_again
            if again is not None:
                self._timer = self._context.clock.call_later(again, self._dirty.set)
        kind = "terminate" if self._life.ending else "sync"
        self._context.metrics.turn.labels(kind).observe(self._context.clock.monotonic() - began)

    async def _tell(self) -> None:
        """Events follow the status that is on its way, unless another resize has been decided by then."""
        await self._writer.written()
        if not self._resized:
            self._context.event_delay.end(self.pod.metadata.uid)

    # ------------------------------------------------------------------ the machine

    def _hear(self, event: Outside) -> None:
        """What comes from outside, at any time."""
        self._life, effects = step(self._life, event, at=self._moment())
        for effect in effects:
            match effect:
                case WriteStatus():
                    self._world.write(effect)
                case Interrupt() if self._turn is not None:
                    self._turn.cancel()
                case TakeTurn():
                    self._dirty.set()

    async def _guarded(self, *, settled: bool) -> float | None:
        """One turn: seconds until the next; None when only news brings one. A resize of what is `settled` goes by what
        was seen last, as upstream's kubelet goes by what it listed last: the runtime is asked about it afterwards.
        """
        if self._life.ending:
            self._forget_early()
        early, self._early = self._early, None
        try:
            failure = await self._driven(self._world.began(early, at_rest=settled and early is None))
        except Exception:
            self._settled = False
            log.exception("pod turn failed pod=%s", labels.ref(self.pod))
            return self._context.jittered(RETRY_SECONDS)
        seconds = self._seconds(self._world.wait)
        if failure is not None:
            self._settled = False
            text = "pod turn failed pod=%s retry_seconds=%.1f error=%s"
            log.warning(text, labels.ref(self.pod), seconds, failure.error)
        return seconds

    async def _driven(self, began: TurnBegan) -> TurnFailed | None:
        """Until the machine wants no more of this turn."""
        try:
            await drive(self, self._world, began)
        except (CRIError, CgroupError, CheckpointError, ApiError, OSError) as error:
            outage, sandbox = isinstance(error, Unavailable), isinstance(self._world.doing, RunSandbox)
            failure = TurnFailed(str(error), outage=outage, sandbox=sandbox)
            await drive(self, self._world, failure)
            return failure
        return None

    async def take(self, event: Event) -> tuple[Effect, ...]:
        """One step of the machine."""
        self._life, effects = step(self._life, event, at=self._moment())
        if self._life.ending:
            self._context.event_delay.end(self.pod.metadata.uid)
        return effects

    def _moment(self) -> Moment:
        return Moment(self._context.clock.now(), self._context.clock.monotonic())

    def _seconds(self, wait: WakeUp) -> float | None:
        times = [] if wait.exactly is None else [wait.exactly]
        if wait.about is not None:
            times.append(self._context.jittered(wait.about))
        if wait.shortened is not None:
            times.append(wait.shortened * (1 - fraction(self._context.client.random) / 2))
        return min(times, default=None)

    def _forget_early(self) -> None:
        if self._early is not None:
            self._early.cancel()
            self._early = None

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
