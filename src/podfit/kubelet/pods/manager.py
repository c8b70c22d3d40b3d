"""The pod manager: takes pods from the API in order, admits them, and runs a worker for each.

    informer ──▶ KnownPods.changes ──▶ one task: allocation first, then the pod's worker
    at the start the whole list is admitted as one batch, so that no pod takes the room of one that runs already

One task takes the changes in order; all it waits for are files of the kubelet, which have a limit of time (see
`disk.writer`), never a container.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable
from functools import partial

from msgspec.structs import replace

from podfit.api.core.v1.pods.static_pods import from_api, is_mirror
from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.decide.node.effects import Preempting, Rejected, Unsaved
from podfit.decide.pod.qos import qos_class
from podfit.kubelet.checkpoints.checkpoint import Checkpoint
from podfit.kubelet.pods.attempts import Attempts
from podfit.kubelet.pods.change_batch import ChangeBatch
from podfit.kubelet.pods.guarded_start import GuardedStarts
from podfit.kubelet.pods.known_pods import KnownPods
from podfit.kubelet.pods.pod_changes import (
    Added,
    Changed,
    Deleted,
    FromApi,
    PodChange,
    RetryAdmission,
    TryAlone,
    uid_of,
)
from podfit.kubelet.pods.runtime_facts import enforced
from podfit.kubelet.pods.worker import PodWorker
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.static.successors import Successors
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

SAVE_RETRY_SECONDS = 1.0


class PodManager:
    """Makes a worker for each pod of the node. `run` until cancelled; `ready` is set once the pods known at the start
    have their workers.
    """

    def __init__(self, context: WorkerContext, known: KnownPods, informer: Informer[Pod], attempts: Attempts) -> None:
        self._context, self._known, self._informer = context, known, informer
        self._workers: dict[str, PodWorker] = {}
        self.supervisor = Supervisor("pod workers")
        self.supervisor.watch(attempts.supervisor)
        self._successors = Successors()
        self._starts = GuardedStarts(
            context, attempts, begin=lambda uid: known.changes.put_nowait(TryAlone(uid)), supervisor=self.supervisor
        )
        self.ready = asyncio.Event()
        informer.add_handler(
            add=lambda pod: self._hear(Added(pod)),
            update=lambda _, pod: self._hear(Changed(pod)),
            delete=lambda pod: self._hear(Deleted(pod)),
        )

    def _hear(self, change: FromApi) -> None:
        """Takes what the API tells. A mirror is an image of a pod and no pod; what says that it comes from a file does
        not."""
        if not is_mirror(change.pod):
            self._known.changes.put_nowait(replace(change, pod=self._context.desired(from_api(change.pod))))

    def changed(self, pod: Pod) -> None:
        """What the node desires for this pod of the API is something else than before."""
        self._hear(Changed(pod))

    async def run(self) -> None:
        context = self._context
        try:
            await self._informer.synced.wait()
            await self._starts.recover()
            found = self._known.waiting_changes()
            await self._rebuild(found)
            await self._take(found)
            await context.allocation.sources_ready()
            context.actuator.retain(self._known.uids())
            self.ready.set()
            self._starts.start()
            while True:
                first = await self._known.changes.get()
                await self._take([first, *self._known.waiting_changes()])
        finally:
            self._known.close()
            await self.supervisor.stop()
            await self._starts.close()

    async def _rebuild(self, arrived: Iterable[PodChange]) -> None:
        """Checkpoints that are damaged, or were never on disk, before anything is decided on them (R-091)."""
        context = self._context
        lost = context.allocation.lost
        for checkpoint in lost:
            if isinstance(checkpoint, Checkpoint):
                context.tell("Warning", *_damage_told(checkpoint))
        if not lost:
            return
        try:
            seen = await enforced(context.runtime, context.config.name)
        except CRIError as error:
            log.warning("runtime not asked what it enforces, the last status has to do error=%s", error)
            seen = {}
        known = (change.pod for change in arrived if isinstance(change, Added | Changed))
        pods = {pod.metadata.uid: self._classified(pod) for pod in known}
        await context.allocation.rebuild(pods.values(), seen)

    async def _take(self, arrived: Iterable[PodChange]) -> None:  # noqa: C901  (a list of what can have come)
        """New pods that come together are admitted together, changes that come together are decided together; the rest
        goes in order.
        """
        batch: list[Pod] = []
        context = self._context
        changes = ChangeBatch(context.allocation, self._workers, looks_ahead=not context.machine.kernel_first)
        for change in arrived:
            uid = uid_of(change)
            if isinstance(change, Changed):
                self._starts.changed(change.pod)
            if isinstance(change, Changed) and uid in self._workers and not batch:
                await changes.add(self._classified(change.pod))
                continue
            await changes.carry_out()
            if isinstance(change, TryAlone):
                await self._add(batch)
                batch = []
                await self._try(uid)
                continue
            if isinstance(change, Added):
                if not self._successors.has_to_wait(change.pod, self._known.pods()):
                    batch.append(self._classified(change.pod))
                continue
            if isinstance(change, Deleted) and self._successors.drop(change.pod):
                continue
            if isinstance(change, RetryAdmission):
                batch += [self._classified(pod) for pod in [self._known.release(change.uid)] if pod is not None]
                continue
            await self._add(batch)
            batch = []
            if self._known.held(uid):
                await self._change_held(change)
            elif isinstance(change, Changed):
                await changes.add(self._classified(change.pod))
            elif worker := self._workers.get(uid):
                await self._context.allocation.delete([uid])
                worker.gone()
                self._starts.forget(uid)
        await changes.carry_out()
        await self._add(batch)

    async def _add(self, batch: list[Pod]) -> None:
        """Pods that may have ended the kubelet wait: at a gate if they have room here, else to be admitted."""
        held = {pod.metadata.uid for pod in batch if self._starts.holds(pod)}
        at_gate = {uid for uid in held if self._context.allocation.has_room(uid)}
        for pod in batch:
            if pod.metadata.uid in held - at_gate:
                self._known.hold(pod)
        self._starts.begin(pod for pod in batch if pod.metadata.uid not in held)
        await self._admit([pod for pod in batch if pod.metadata.uid not in held - at_gate], at_gate)

    async def _try(self, uid: str) -> None:
        if not self._starts.is_due(uid):
            return
        await self._starts.alone(uid)
        if pod := self._known.release(uid):
            await self._admit([self._classified(pod)])
        else:
            self._starts.gate(uid).set()

    async def _admit(self, batch: list[Pod], at_gate: Collection[str] = ()) -> None:
        if not batch:
            return
        context = self._context
        by_uid = {pod.metadata.uid: pod for pod in batch}
        answers, _ = await asyncio.gather(context.allocation.add(batch), self._starts.durable())
        for answer in answers:
            uid = answer.pod.metadata.uid
            if isinstance(answer, Unsaved | Preempting):
                self._starts.done(uid)
                self._hold(by_uid[uid], answer)
                continue
            gate = self._starts.gate(uid)
            if uid not in at_gate:
                gate.set()
            worker = PodWorker(context, by_uid[uid], tried=partial(self._starts.done, uid))
            worker.shown(self._known.mirror(uid))
            if isinstance(answer, Rejected):
                context.emit(answer.pod, "Warning", answer.reason, answer.message, "")
                worker.reject(answer.reason, answer.message)
            self._workers[uid] = worker
            self._known.begin(uid, worker)
            self.supervisor.watch(worker.supervisor)
            self.supervisor.begin(self._live(uid, worker, gate), name=f"worker {uid}")

    def _hold(self, pod: Pod, answer: Unsaved | Preempting) -> None:
        """The pod waits, and nobody else waits for it. Allocation wakes it when others have ended for it; nobody tells
        when an allocation can be written again.
        """
        uid = pod.metadata.uid
        self._known.hold(pod)
        if isinstance(answer, Unsaved):
            log.warning("cannot save allocation, the pod waits pod=%s error=%s", labels.ref(pod), answer.message)
            self._context.emit(pod, "Warning", "FailedSaveAllocation", answer.message, "")
            again = partial(self._known.add_again, uid)
            self._known.add_again_by(uid, self._context.clock.call_later(SAVE_RETRY_SECONDS, again))

    async def _change_held(self, change: Changed | Deleted) -> None:
        uid = change.pod.metadata.uid
        if isinstance(change, Deleted):
            self._known.release(uid)
            self._starts.forget(uid)
            await self._context.allocation.remove([uid])
            return
        self._known.hold(change.pod)
        if change.pod.metadata.deletion_timestamp is not None:
            self._known.add_again(uid)

    async def _live(self, uid: str, worker: PodWorker, gate: asyncio.Event) -> None:
        """Nothing is said about a pod before resizes are decided again: a status that has seen the newest generation
        and shows no condition would pass for a resize that is complete.
        """
        await self.ready.wait()
        await gate.wait()
        await worker.run()
        del self._workers[uid]
        self._known.end(uid)
        self._starts.forget(uid)
        await self._context.allocation.remove([uid])
        self._context.starter.forget(uid)
        successor = self._successors.after(worker.pod)
        if successor is not None:
            self._known.changes.put_nowait(Added(successor))

    def _classified(self, pod: Pod) -> Pod:
        """The API server stores the QoS class on creation; a pod from elsewhere may lack it."""
        if pod.status.qos_class:
            return pod
        return replace(pod, status=replace(pod.status, qos_class=qos_class(pod, self._context.machine.gates)))


def _damage_told(checkpoint: Checkpoint) -> tuple[str, str]:
    """Reason and message of the node's event."""
    if checkpoint.set_aside is None:
        return "CheckpointDamaged", f"{checkpoint.path} is damaged and cannot be renamed: {checkpoint.damage}"
    text = f"{checkpoint.path} was damaged and is now {checkpoint.set_aside.name}: {checkpoint.damage}"
    return "CheckpointSetAside", f"{text}; rebuilt from the runtime and the last status of the pods"
