"""Who is promised what on this node (spec 5.2 to 5.5).

One pass goes through everything that waits, in order, each success counting at once for the rest; then all that was
granted is written in one go, and only then do conditions, events and syncs follow. Whatever changes the set of pods
waits for the pass to end, so a decision never sees half a change. A pass is cheap: it is run whenever room may have
come free.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from podfit.api.core.pods import Pod, PodCondition, PodStatus
from podfit.core.clock import Clock, Timer
from podfit.decide import resize
from podfit.decide.fit import Fits, NodeView
from podfit.decide.overlay import PodResources
from podfit.kubelet.allocation import passes
from podfit.kubelet.allocation.admission import Admitted, Answer, Batch, Preempting
from podfit.kubelet.allocation.announcer import Announcer, Emit, End, Sync
from podfit.kubelet.allocation.checkpoint import Checkpoint, CheckpointError
from podfit.kubelet.allocation.conditions import PENDING, Conditions
from podfit.kubelet.allocation.ledger import TERMINAL, Ledger
from podfit.kubelet.allocation.metrics import ResizeMetrics, SizeMetrics
from podfit.kubelet.allocation.passes import Decision
from podfit.kubelet.allocation.rebuild import Seen
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.net.metrics import Metrics

log = logging.getLogger(__name__)

RETRY_SOON = 30.0
RETRY_PERIOD = 180.0
SAVE_RETRY = 10.0  # while the disk takes no promise: nothing tells when it does again


class AllocationManager:
    def __init__(
        self, *, allocated: Checkpoint, actuated: Checkpoint, node: Callable[[], NodeView], clock: Clock, emit: Emit,
        sync: Sync, end: End, metrics: Metrics, managers: ResourceManagers,
    ) -> None:  # fmt: skip
        self._allocated, self._actuated = allocated, actuated
        self._node, self._clock, self._managers = node, clock, managers
        self._conditions = Conditions(clock)
        self._metrics = ResizeMetrics(metrics, self._conditions)
        self._announcer = Announcer(self._conditions, self._metrics, emit, sync, end)
        self._sync = sync
        self._ledger = Ledger(allocated, actuated, node)
        SizeMetrics(metrics, self._ledger.active, self._ledger.allocated)
        self._incoming: dict[str, Pod] = {}
        self._queue: list[str] = []
        self._failing: set[str] = set()
        self._ready = False
        self._deciding = asyncio.Lock()
        self._timer: Timer | None = None
        self._periodic: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ what workers ask

    def allocated(self, pod: Pod) -> Pod:
        """The pod at the size that was promised; the same object when that is what it desires."""
        return self._ledger.allocated(pod)

    def conditions(self, uid: str) -> tuple[PodCondition, ...]:
        return self._conditions.of(uid)

    async def settled(self) -> None:
        """Returns when no decision is half told: being written, with the conditions that follow from it still to come.
        What is read before the next `await` belongs together.
        """
        async with self._deciding:
            return

    def begin_sync(self, pod: Pod, running: Collection[str]) -> Pod:
        """The allocated pod for one sync. In the same breath PodResizeInProgress comes, stays or goes (pitfall 10).

        `running` names the containers that run. A resize whose last actuation failed is not over, even if the records
        of its containers agree.
        """
        uid, gates = pod.metadata.uid, self._node().gates
        allocated, actuated = self.allocated(pod), self._actuated.get(uid) or PodResources()
        ongoing = uid in self._failing or resize.in_progress(allocated, actuated, running, gates)
        self._announcer.progress(pod, allocated, ongoing=ongoing)
        return allocated

    def report(self, pod: Pod, error: str) -> None:
        """How the sync's actuation went; an empty error means that all was done or there was nothing to do."""
        if not error:
            self._failing.discard(pod.metadata.uid)
            return
        self._failing.add(pod.metadata.uid)
        self._announcer.failed(pod, self.allocated(pod), error)

    # ------------------------------------------------------------------ what happens to pods

    @property
    def damaged(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that were found damaged; `rebuild` before the first `add`."""
        return tuple(each for each in (self._allocated, self._actuated) if each.damage)

    async def rebuild(self, pods: Collection[Pod], seen: Mapping[str, Seen]) -> None:
        """Put together what the damaged checkpoints held for these pods; `seen` is what the runtime shows, by UID."""
        self._ledger.rebuild(pods, seen)
        for checkpoint in self.damaged:
            try:
                await checkpoint.put({})
            except CheckpointError as error:
                log.warning("rebuilt checkpoint not saved, the next change tries again error=%s", error)

    async def add(self, pods: Iterable[Pod]) -> tuple[Answer, ...]:
        """Admit pods, oldest first, each at its allocated size (R-089, R-172).

        Room is kept for every pod of the batch that was promised some before, and such a pod is admitted even while
        nothing can be written.
        """
        async with self._deciding:
            batch = sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.uid))
            draft = {**self._ledger.members, **self._ledger.promised(batch)}
            drafted = Batch(self._ledger, self._node(), draft, self._ledger.claims)
            answers = tuple(drafted.admit(pod) for pod in batch)
            try:
                await self._managers.keep(drafted.node.cpus, drafted.node.memory)
                await self._allocated.put(drafted.changes)
            except CheckpointError as error:
                answers = tuple(drafted.unsaved(each, str(error)) for each in answers)
            self._ledger.members, self._ledger.claims = drafted.draft, drafted.claims
            for each in answers:
                if isinstance(each, Preempting):
                    self._announcer.preempts(each.preempts)
            admitted = [each.pod for each in answers if isinstance(each, Admitted)]
            waiting = [pod.metadata.uid for pod in admitted if self._adopt(pod)]
            if waiting:
                self._push(waiting)
                await self._pass("pods_added")
            return tuple(self._refreshed(each) for each in answers)

    async def update(self, pods: Iterable[Pod]) -> None:
        """The API's pods changed. A new desire replaces one that waits (R-110) and is evaluated before this returns.

        Changes that arrive while a pass is being written share the next one.
        """
        self._incoming.update((pod.metadata.uid, pod) for pod in pods)
        async with self._deciding:
            arrived, self._incoming = self._incoming, {}
            changed = [uid for uid, each in arrived.items() if self._replace(uid, each)]
            if changed:
                self._push(changed)
                await self._pass("pod_updated")

    def _replace(self, uid: str, pod: Pod) -> bool:
        """Take the new spec; whether it asks for other resources."""
        old = self._ledger.members.get(uid)
        if old is None:
            return False
        self._ledger.members[uid] = self._ledger.member(msgspec.structs.replace(pod, status=old.pod.status))
        if not self._ledger.resources_differ(old.pod, pod):
            return False
        self._metrics.requested(old.pod, pod, self._node().gates)
        return True

    async def reconcile(self, uid: str, status: PodStatus) -> None:
        """A status was generated: room comes free when the pod ended, or holds less than before (R-100, R-101)."""
        async with self._deciding:
            old = self._ledger.members.get(uid)
            if old is None:
                return
            new = self._ledger.members[uid] = self._ledger.member(msgspec.structs.replace(old.pod, status=status))
            if not new.active:
                self._over([uid])
            if old.active and not new.active:
                await self._room_came_free("pod_terminated")
            elif passes.shrank(old.counts, new.counts):
                await self._room_came_free("pod_resized")

    async def remove(self, uids: Iterable[str]) -> None:
        """Pods of which nothing is left (R-099)."""
        async with self._deciding:
            gone = set(uids)
            for uid in gone:
                self._ledger.members.pop(uid, None)
                self._allocated.forget(uid)
            self._over(gone)
            await self._room_came_free("pods_removed")

    async def sources_ready(self) -> None:
        """Every pod of this node has been added; resizes may be decided from now on (R-173)."""
        async with self._deciding:
            self._ready = True
            known = self._ledger.members.keys() | self._ledger.claims.held.keys()
            self._allocated.retain(known)
            self._managers.retain(known)
            if self._queue:
                await self._pass("pods_added")

    async def retry(self, trigger: str) -> None:
        """Try everything that waits once more, for a reason from outside such as more allocatable room."""
        async with self._deciding:
            await self._room_came_free(trigger)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._periodic is not None:
            self._periodic.cancel()

    # ------------------------------------------------------------------ inside

    def _over(self, uids: Collection[str]) -> None:
        """Nothing more is decided about these pods, and they stand in nobody's way."""
        for uid in uids:
            self._managers.release(uid)
            self._conditions.forget(uid)
            self._failing.discard(uid)
            self._ledger.claims = self._ledger.claims.without(uid)
        self._queue = [uid for uid in self._queue if uid not in uids]

    async def _room_came_free(self, trigger: str) -> None:
        """First for those that wait here, then for the critical pods that are to be added again."""
        if self._queue:
            await self._pass(trigger)
        for uid in self._ledger.claims.held:
            if uid not in self._ledger.members:
                self._sync(uid, trigger)

    def _adopt(self, pod: Pod) -> bool:
        """Remember the conditions of an admitted pod; whether a resize of it waits."""
        if pod.status.phase in TERMINAL:
            return False
        self._conditions.adopt(pod)
        waits = self.allocated(pod) is not pod
        if not waits:
            self._conditions.clear(PENDING, pod.metadata.uid)
        return waits

    def _refreshed(self, answer: Answer) -> Answer:
        return Admitted(self.allocated(answer.pod)) if isinstance(answer, Admitted) else answer

    def _push(self, uids: Iterable[str]) -> None:
        self._queue = passes.ordered((*self._queue, *uids), self._ledger, self._conditions)

    async def _pass(self, trigger: str) -> None:
        """Decide about all that wait, write what was granted, then tell (R-108, pitfall 30)."""
        if not self._ready:
            self._arm(RETRY_SOON)
            return
        outcome = passes.decide(self._queue, self._ledger, self._node())
        try:
            await self._managers.keep(outcome.node.cpus, outcome.node.memory)
            await self._allocated.put(outcome.changes)
        except CheckpointError as error:
            log.warning("allocation not saved, resizes stay queued pods=%d error=%s", len(outcome.changes), error)
            outcome = passes.decide(self._queue, self._ledger, self._node(), unsaved=str(error))
        self._ledger.claims = outcome.claims
        for decision in outcome.decisions:
            self._publish(decision, trigger)
        self._queue = outcome.waiting
        if self._queue:
            self._arm(SAVE_RETRY if outcome.unsaved else RETRY_PERIOD)

    def _publish(self, decision: Decision, trigger: str) -> None:
        pod, uid = decision.pod, decision.pod.metadata.uid
        match decision.verdict:
            case None:
                self._announcer.settled(pod, trigger)
            case Fits():
                self._failing.discard(uid)
                self._ledger.members[uid] = self._ledger.member(pod)
                self._announcer.granted(pod, trigger, active=decision.active)
            case refusal:
                self._announcer.refused(pod, refusal, trigger, active=decision.active)
        if decision.preempts is not None:
            self._announcer.preempts(decision.preempts)

    def _arm(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._periodic = asyncio.get_running_loop().create_task(self.retry("periodic_retry"))
