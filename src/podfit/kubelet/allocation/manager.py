"""The allocation manager: the shell of the node machine. It persists what is allocated, then carries out the effects.

    event ──▶ decide.node.machine.step ──▶ Persist: checkpoint and managers' files ──▶ state, events, syncs, metrics
    sync  ──▶ ActuationDue ──▶ its own world, kubelet.actuation, beside this one ──▶ Actuated, ActuationEnded

Steps are taken one after the other: whoever reads the state sees none that is half done. When nothing can be persisted
the step is taken again without allocating anything.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodCondition, PodStatus
from podfit.core.clock import Clock, Timer
from podfit.core.shared_map import SharedMap
from podfit.decide.node import effects as do
from podfit.decide.node import events as on
from podfit.decide.node.conditions import Conditions
from podfit.decide.node.drive import drive
from podfit.decide.node.effects import Answer, Effect
from podfit.decide.node.events import Event
from podfit.decide.node.machine import step
from podfit.decide.node.pending_resizes import would_fit
from podfit.decide.node.state import NodeState
from podfit.decide.pod.allocated import PodResources
from podfit.decide.resize.verdict import NodeView
from podfit.kubelet.allocation import rebuild
from podfit.kubelet.allocation.metrics import ResizeMetrics, SizeMetrics
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.checkpoints.entries import Entries
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

Emit: TypeAlias = Callable[[Pod, str, str, str], None]
"""Record an event: pod, type, reason, message."""
Sync: TypeAlias = Callable[[str, str], None]
"""Sync the pod of this UID now; the second argument is the trigger."""
Grow: TypeAlias = Callable[[Pod], None]
"""Write at once what grows of a pod, at the size that it has been allocated durably."""
End: TypeAlias = Callable[[str], None]
"""Have the pod of this UID end for a critical one."""

Occurrence: TypeAlias = Event | Callable[[], Event]
"""An event, or what makes it once no step is under way."""


class Allocated(msgspec.Struct, frozen=True):
    """One consistent look at a pod: as desired, at its allocated size, and the conditions of its resize."""

    desired: Pod
    pod: Pod
    conditions: tuple[PodCondition, ...]


class AllocationManager:
    def __init__(
        self,
        *,
        allocated: Entries,
        actuated: Entries,
        node: Callable[[], NodeView],
        clock: Clock,
        emit: Emit,
        sync: Sync,
        grow: Grow,
        end: End,
        metrics: Metrics,
        managers: ResourceManagers,
    ) -> None:
        self._allocated, self._actuated = allocated, actuated
        self._node, self._clock, self._managers = node, clock, managers
        self._emit, self._sync, self._grow, self._end = emit, sync, grow, end
        self._state = NodeState(
            view=node(), allocated=SharedMap(allocated.entries), actuated=SharedMap(actuated.entries)
        )
        actuated.on_put = self._noted
        self._unseen: deque[Event] = deque()
        self._metrics = ResizeMetrics(metrics, self._conditions)
        SizeMetrics(metrics, self._active, self.allocated)
        self._incoming: dict[str, Pod] = {}
        self._stepping = asyncio.Lock()
        self._timer: Timer | None = None
        self.supervisor = Supervisor("allocation")

    # ------------------------------------------------------------------ what workers ask

    def allocated(self, pod: Pod) -> Pod:
        """The pod at its allocated size; the same object when that is what it desires."""
        return self._state.allocated_pod(pod)

    def has_room(self, uid: str) -> bool:
        """Whether the pod of this UID was admitted before."""
        return uid in self._state.allocated

    def has_room_for(self, pod: Pod) -> bool:
        """Whether the pod would be granted this size now, were it asked for."""
        return would_fit(self._state, pod)

    def conditions(self, uid: str) -> tuple[PodCondition, ...]:
        return self._state.conditions.of(uid)

    def known(self, desired: Pod) -> Allocated:
        """What is known now, whether a step is under way or not."""
        return Allocated(desired, self.allocated(desired), self.conditions(desired.metadata.uid))

    async def look(self, newest: Callable[[], Pod]) -> Allocated:
        """`newest` is the API's pod; it is asked for once no step is under way."""
        async with self._stepping:
            return self.known(newest())

    async def begin_sync(self, newest: Callable[[], Pod], running: Collection[str]) -> Allocated:
        """The same, for one sync of the pod: PodResizeInProgress comes, stays or goes. `running` names the containers
        that run.
        """
        looked = newest()

        def started() -> Event:
            nonlocal looked
            looked = newest()
            return on.SyncStarted(looked, running)

        await drive(self, self, started)
        return self.known(looked)

    # ------------------------------------------------------------------ what happens to pods

    @property
    def lost(self) -> tuple[Entries, ...]:
        """The checkpoints that are damaged, or were never on disk; `rebuild` before the first `add`."""
        return tuple(checkpoint for checkpoint in (self._allocated, self._actuated) if checkpoint.is_lost)

    async def rebuild(self, pods: Collection[Pod], seen: Mapping[str, rebuild.Seen]) -> None:
        """Put together what the lost checkpoints held for these pods; `seen` is what the runtime shows, by UID."""
        machine = self._node().machine
        for checkpoint, read in ((self._allocated, rebuild.allocated), (self._actuated, rebuild.actuated)):
            if checkpoint.is_lost:
                found = {pod.metadata.uid: read(pod, seen.get(pod.metadata.uid, {}), machine) for pod in pods}
                checkpoint.restore({uid: resources for uid, resources in found.items() if resources is not None})
        allocated, actuated = SharedMap(self._allocated.entries), SharedMap(self._actuated.entries)
        self._state = replace(self._state, allocated=allocated, actuated=actuated)
        await self._catch_up(self._allocated.catch_up, self._actuated.catch_up)

    async def add(self, pods: Iterable[Pod]) -> tuple[Answer, ...]:
        """Admit pods together, oldest first (R-089, R-172); an answer for each."""
        effects = await drive(self, self, on.PodsAdded(tuple(pods)))
        return tuple(effect for effect in effects if isinstance(effect, Answer))

    async def update(self, pods: Iterable[Pod]) -> None:
        """The API's pods changed. Changes that arrive while a step is being persisted share the next one."""
        self._incoming.update((pod.metadata.uid, pod) for pod in pods)
        await drive(self, self, self._arrived)

    def _arrived(self) -> Event:
        arrived, self._incoming = self._incoming, {}
        return on.PodsUpdated(tuple(arrived.values()))

    async def reconcile(self, uid: str, status: PodStatus) -> None:
        """A status was generated."""
        await drive(self, self, on.StatusGenerated(uid, status))

    async def delete(self, uids: Iterable[str]) -> None:
        """The API has these pods no more; something of them may still run."""
        await drive(self, self, on.PodsDeleted(tuple(uids)))

    async def remove(self, uids: Iterable[str]) -> None:
        """Nothing of these pods is left."""
        await drive(self, self, on.PodsRemoved(tuple(uids)))

    async def sources_ready(self) -> None:
        """Every pod of this node has been added."""
        await drive(self, self, on.SourcesReady())

    async def retry(self, trigger: str) -> None:
        """Try everything that waits once more, for a reason from outside such as more allocatable room."""
        await drive(self, self, on.Retry(trigger))

    def retry_soon(self, trigger: str) -> None:
        """The same, without waiting for it."""
        self.supervisor.begin(self.retry(trigger), name=f"retry resizes: {trigger}")

    def disk_answers(self) -> None:
        """What was given up while the disk did not answer is done, without waiting for it."""
        self.supervisor.begin(self._done_again(), name="write what the disk did not take")

    async def _done_again(self) -> None:
        async with self._stepping:
            await self._catch_up(self._managers.flush, self._allocated.catch_up, self._actuated.catch_up)
        await self.retry("periodic_retry")

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.supervisor.stop()

    # ------------------------------------------------------------------ inside

    def _conditions(self) -> Conditions:
        return self._state.conditions

    def _active(self) -> list[Pod]:
        """Active pods as desired, with the newest status known."""
        return [entry.pod for entry in self._state.pods.values() if entry.active]

    async def take(self, event: Occurrence) -> tuple[Effect, ...]:
        """One step, persisted. What was actuated while it was taken is taken in before the next."""
        async with self._stepping:
            if self._unseen:
                self._take_in()
            happened = event() if callable(event) else event
            state, effects = self._step(happened)
            try:
                await self._persist(effects)
            except CheckpointError as error:
                log.warning("allocation not saved, resizes stay queued error=%s", error)
                state, effects = self._step(happened, unsaved=str(error))
            self._state = state
            if self._unseen:
                self._take_in()
        return effects

    def _noted(self, actuated: Mapping[str, PodResources]) -> None:
        """The checkpoint has these now. Whoever actuates does not wait for a step that is being persisted."""
        self._unseen.extend(on.Actuated(uid, resources) for uid, resources in actuated.items())
        if not self._stepping.locked():
            self._take_in()

    def _take_in(self) -> None:
        while self._unseen:
            self._state, _ = step(self._state, self._unseen.popleft(), now=self._clock.now())

    def _step(self, event: Event, *, unsaved: str = "") -> tuple[NodeState, tuple[Effect, ...]]:
        state = replace(self._state, view=self._node())
        return step(state, event, now=self._clock.now(), unsaved=unsaved)

    async def _persist(self, effects: tuple[Effect, ...]) -> None:
        """Raises CheckpointError."""
        for effect in effects:
            match effect:
                case do.Release(uids=uids):
                    for uid in uids:
                        self._managers.release(uid)
                case do.Persist():
                    await self._managers.keep(effect.cpus, effect.memory)
                    await self._allocated.put(effect.allocations)

    async def carry_out(self, effect: Effect) -> tuple[Event, ...]:  # noqa: C901  (a list of effects)
        """Carries out whatever concerns the node; waits for nothing, so that effects keep the order of their steps."""
        match effect:
            case do.Forget(uids=uids):
                for uid in uids:
                    self._allocated.forget(uid)
            case do.Grow(pods=pods):
                for pod in pods:
                    self._grow(pod)
            case do.RecordEvent():
                self._emit(effect.pod, effect.type, effect.reason, effect.message)
            case do.Sync(uid=uid, trigger=trigger):
                self._sync(uid, trigger)
            case do.End(uid=uid):
                self._end(uid)
            case do.WakeUp(seconds=seconds):
                self._arm(seconds)
            case do.Count(metric=metric, label=label):
                self._metrics.count(metric, label)
            case do.Requested(old=old, new=new):
                self._metrics.requested(old, new, self._state.view.gates)
        return ()

    def _arm(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(seconds, lambda: self.retry_soon("periodic_retry"))

    async def _catch_up(self, *writings: Callable[[], Awaitable[None]]) -> None:
        for write in writings:
            try:
                await write()
            except CheckpointError as error:
                log.warning("not saved, the next change tries again error=%s", error)
