"""From the API's pods to workers: admission, changes, ends.

    informer ──▶ inbox ──▶ one task: allocation first, then the pod's worker
    at the start the whole list is admitted as one batch, so that no pod takes the room of one that runs already

One task takes the news in order; all it waits for are files of the kubelet, which have a limit of time (see
`kubelet.writer`), never a container.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.core.clock import Timer
from podfit.decide.node.effects import Preempting, Rejected, Unsaved
from podfit.decide.pod.qos import qos_class
from podfit.kubelet.allocation.checkpoint import Checkpoint
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.pods import labels
from podfit.kubelet.pods.attempts import Attempts
from podfit.kubelet.pods.changes import Changes
from podfit.kubelet.pods.facts import enforced
from podfit.kubelet.pods.news import Added, Again, Changed, Deleted, FromApi, News, Try, uid_of
from podfit.kubelet.pods.toolbox import Toolbox
from podfit.kubelet.pods.trials import Trials
from podfit.kubelet.pods.worker import PodWorker
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.static.annotations import from_api, is_mirror
from podfit.kubelet.static.successors import Successors
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

SAVE_RETRY_SECONDS = 1.0


class PodManager:
    """Workers by uid. `run` until cancelled; `ready` is set once the pods known at the start have their workers."""

    def __init__(self, informer: Informer[Pod], attempts: Attempts) -> None:
        self._informer = informer
        self._inbox: asyncio.Queue[News] = asyncio.Queue()
        self._workers: dict[str, PodWorker] = {}
        self.supervisor = Supervisor("pod workers")
        self.supervisor.watch(attempts.supervisor)
        self._held: dict[str, Pod] = {}  # neither admitted nor rejected: to be added again
        self._saves: dict[str, Timer] = {}  # of those that are held because nothing could be saved
        self._doomed: set[str] = set()
        self._successors = Successors()
        self._trials = Trials(attempts, begin=lambda uid: self._inbox.put_nowait(Try(uid)), supervisor=self.supervisor)
        self._mirrors: dict[str, Pod] = {}
        self.ready = asyncio.Event()
        informer.add_handler(
            add=lambda pod: self._hear(Added(pod)),
            update=lambda _, pod: self._hear(Changed(pod)),
            delete=lambda pod: self._hear(Deleted(pod)),
        )

    # ------------------------------------------------------------------ what others ask

    def resize(self, uid: str) -> None:
        """Allocation has decided about a resize of this pod: its worker is to look, before others tell of it."""
        worker = self._workers.get(uid)
        if worker is not None:
            worker.go_first()
        self._return(uid)

    def wake(self, uid: str) -> None:
        """Something happened to this pod; have its worker look. One that is not admitted yet is tried again."""
        worker = self._workers.get(uid)
        if worker is not None:
            worker.wake()
        self._return(uid)

    def preempt(self, uid: str) -> None:
        """Have a pod end for a critical one. It may have been admitted this moment and have no worker yet."""
        worker = self._workers.get(uid)
        if worker is not None:
            worker.preempt()
        else:
            self._doomed.add(uid)

    def wake_all(self) -> None:
        for uid in (*self._workers, *self._held):
            self.wake(uid)

    def known(self) -> set[str]:
        """The pods that have a worker, whatever state they are in."""
        return set(self._workers)

    def pods(self) -> list[Pod]:
        return [worker.pod for worker in self._workers.values()]

    def active(self, allocation: AllocationManager) -> Iterator[Pod]:
        """The allocated pods that hold or will hold something of the node."""
        return (allocation.allocated(worker.pod) for worker in self._workers.values() if worker.active)

    # ------------------------------------------------------------------ static pods

    def add_static(self, pod: Pod) -> None:
        self._inbox.put_nowait(Added(pod))

    def drop_static(self, pod: Pod) -> None:
        self._inbox.put_nowait(Deleted(pod))

    def shown(self, uid: str, mirror: Pod | None) -> None:
        """What the API has of the static pod of this UID."""
        self._mirrors.pop(uid, None)
        if mirror is not None:
            self._mirrors[uid] = mirror
        worker = self._workers.get(uid)
        if worker is not None:
            worker.shown(mirror)

    # ------------------------------------------------------------------ the loop

    def _hear(self, news: FromApi) -> None:
        """From the API. A mirror is an image of a pod and no pod; what says that it comes from a file does not."""
        if not is_mirror(news.pod):
            self._inbox.put_nowait(replace(news, pod=from_api(news.pod)))

    async def run(self, tools: Toolbox) -> None:
        try:
            await self._informer.synced.wait()
            await self._trials.recover()
            first_news = self._waiting()
            await self._rebuild(tools, first_news)
            await self._take(tools, first_news)
            await tools.allocation.sources_ready()
            tools.actuator.retain(self.known())
            self.ready.set()
            self._trials.start()
            while True:
                first = await self._inbox.get()
                await self._take(tools, [first, *self._waiting()])
        finally:
            for timer in self._saves.values():
                timer.cancel()
            await self.supervisor.stop()
            await self._trials.close()

    def _waiting(self) -> list[News]:
        found = []
        while not self._inbox.empty():
            found.append(self._inbox.get_nowait())
        return found

    async def _rebuild(self, tools: Toolbox, news: Iterable[News]) -> None:
        """Checkpoints that were damaged, before anything is decided on them (R-091)."""
        damaged = tools.allocation.damaged
        for checkpoint in damaged:
            tools.tell("Warning", *_damage_told(checkpoint))
        if not damaged:
            return
        try:
            seen = await enforced(tools.runtime, tools.config.name)
        except CRIError as error:
            log.warning("runtime not asked what it enforces, the last status has to do error=%s", error)
            seen = {}
        known = (each.pod for each in news if isinstance(each, Added | Changed))
        pods = {pod.metadata.uid: _classified(pod, tools) for pod in known}
        await tools.allocation.rebuild(pods.values(), seen)

    async def _take(self, tools: Toolbox, news: Iterable[News]) -> None:
        """New pods that come together are admitted together, changes that come together are decided together; the rest
        goes in order.
        """
        batch: list[Pod] = []
        changes = Changes(tools.allocation, self._workers)
        for each in news:
            uid = uid_of(each)
            if isinstance(each, Changed):
                self._trials.changed(each.pod)
            if isinstance(each, Changed) and uid in self._workers and not batch:
                await changes.add(_classified(each.pod, tools))
                continue
            await changes.carry_out()
            if isinstance(each, Try):
                await self._add(tools, batch)
                batch = []
                await self._try(tools, uid)
                continue
            if isinstance(each, Added):
                if not self._successors.has_to_wait(each.pod, self.pods()):
                    batch.append(_classified(each.pod, tools))
                continue
            if isinstance(each, Deleted) and self._successors.drop(each.pod):
                continue
            if isinstance(each, Again):
                batch += [_classified(pod, tools) for pod in [self._held.pop(each.uid, None)] if pod is not None]
                continue
            await self._add(tools, batch)
            batch = []
            if uid in self._held:
                await self._change_held(tools, each)
            elif isinstance(each, Changed):
                await changes.add(_classified(each.pod, tools))
            elif worker := self._workers.get(uid):
                await tools.allocation.delete([uid])
                worker.gone()
                self._trials.forget(uid)
        await changes.carry_out()
        await self._add(tools, batch)

    async def _add(self, tools: Toolbox, batch: list[Pod]) -> None:
        """Pods that may have ended the kubelet wait: at a gate if they have room here, else to be admitted."""
        held = {pod.metadata.uid for pod in batch if self._trials.holds(tools, pod)}
        at_gate = {uid for uid in held if tools.allocation.has_room(uid)}
        self._held |= {pod.metadata.uid: pod for pod in batch if pod.metadata.uid in held - at_gate}
        self._trials.begin(tools, (pod for pod in batch if pod.metadata.uid not in held))
        await self._admit(tools, [pod for pod in batch if pod.metadata.uid not in held - at_gate], at_gate)

    async def _try(self, tools: Toolbox, uid: str) -> None:
        if not self._trials.is_due(uid):
            return
        await self._trials.alone(tools, uid)
        if pod := self._held.pop(uid, None):
            await self._admit(tools, [_classified(pod, tools)])
        else:
            self._trials.gate(uid).set()

    async def _admit(self, tools: Toolbox, batch: list[Pod], at_gate: Collection[str] = ()) -> None:
        if not batch:
            return
        by_uid = {pod.metadata.uid: pod for pod in batch}
        answers, _ = await asyncio.gather(tools.allocation.add(batch), self._trials.durable())
        for answer in answers:
            uid = answer.pod.metadata.uid
            if isinstance(answer, Unsaved | Preempting):
                self._trials.done(uid)
                self._hold(tools, by_uid[uid], answer)
                continue
            gate = self._trials.gate(uid)
            if uid not in at_gate:
                gate.set()
            worker = PodWorker(tools, by_uid[uid], tried=partial(self._trials.done, uid))
            worker.shown(self._mirrors.get(uid))
            if isinstance(answer, Rejected):
                tools.emit(answer.pod, "Warning", answer.reason, answer.message, "")
                worker.reject(answer.reason, answer.message)
            if uid in self._doomed:
                self._doomed.discard(uid)
                worker.preempt()
            self._workers[uid] = worker
            self.supervisor.watch(worker.supervisor)
            self.supervisor.begin(self._live(tools, uid, worker, gate), name=f"worker {uid}")

    def _hold(self, tools: Toolbox, pod: Pod, answer: Unsaved | Preempting) -> None:
        """The pod waits, and nobody else waits for it. Allocation wakes it when others have ended for it; nobody tells
        when a promise can be written again.
        """
        uid = pod.metadata.uid
        self._held[uid] = pod
        if isinstance(answer, Unsaved):
            log.warning("cannot save allocation, the pod waits pod=%s error=%s", labels.ref(pod), answer.message)
            tools.emit(pod, "Warning", "FailedSaveAllocation", answer.message, "")
            self._saves[uid] = tools.clock.call_later(SAVE_RETRY_SECONDS, lambda: self._return(uid))

    def _return(self, uid: str) -> None:
        if timer := self._saves.pop(uid, None):
            timer.cancel()
        if uid in self._held:
            self._inbox.put_nowait(Again(uid))

    async def _change_held(self, tools: Toolbox, news: Changed | Deleted) -> None:
        uid = news.pod.metadata.uid
        if isinstance(news, Deleted):
            del self._held[uid]
            self._trials.forget(uid)
            await tools.allocation.remove([uid])
            return
        self._held[uid] = news.pod
        if news.pod.metadata.deletion_timestamp is not None:
            self._return(uid)

    async def _live(self, tools: Toolbox, uid: str, worker: PodWorker, gate: asyncio.Event) -> None:
        """Nothing is said about a pod before resizes are decided again: a status that has seen the newest generation
        and shows no condition would pass for a resize that is complete.
        """
        await self.ready.wait()
        await gate.wait()
        await worker.run()
        del self._workers[uid]
        self._doomed.discard(uid)
        self._trials.forget(uid)
        await tools.allocation.remove([uid])
        tools.starter.forget(uid)
        successor = self._successors.after(worker.pod)
        if successor is not None:
            self._inbox.put_nowait(Added(successor))


def _classified(pod: Pod, tools: Toolbox) -> Pod:
    """The API server stores the QoS class on creation; a pod from elsewhere may lack it."""
    if pod.status.qos_class:
        return pod
    return replace(pod, status=replace(pod.status, qos_class=qos_class(pod, tools.machine.gates)))


def _damage_told(checkpoint: Checkpoint) -> tuple[str, str]:
    """Reason and message of the node's event."""
    if checkpoint.set_aside is None:
        return "CheckpointDamaged", f"{checkpoint.path} is damaged and cannot be renamed: {checkpoint.damage}"
    text = f"{checkpoint.path} was damaged and is now {checkpoint.set_aside.name}: {checkpoint.damage}"
    return "CheckpointSetAside", f"{text}; rebuilt from the runtime and the last status of the pods"
