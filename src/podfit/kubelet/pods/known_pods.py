"""The pods of this node by UID, as other parts of the kubelet query them.

    informer, manifests ──▶ changes ──▶ PodManager, which adds and removes workers
    allocation, runtime, disk ──▶ resize, wake, preempt ──▶ the pod's worker

Everything else is built on it: who decides about pods or watches them names a pod here and knows no worker.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.core.clock import Timer
from podfit.decide.lifecycle.facts import Failure
from podfit.kubelet.actuation.actuator import LivePod
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.pods.pod_changes import Added, Deleted, PodChange, RetryAdmission

log = logging.getLogger(__name__)


class Worker(Protocol):
    """What is asked of the worker of a pod."""

    @property
    def pod(self) -> Pod: ...

    @property
    def status(self) -> PodStatus: ...

    @property
    def active(self) -> bool: ...

    @property
    def live(self) -> LivePod | None: ...

    def go_first(self) -> None: ...

    def wake(self) -> None: ...

    def listed(self, states: Mapping[str, str]) -> None: ...

    def preempt(self) -> None: ...

    def fail(self, failure: Failure) -> None: ...

    def shown(self, mirror: Pod | None) -> None: ...


class KnownPods:
    def __init__(self) -> None:
        self.changes: asyncio.Queue[PodChange] = asyncio.Queue()
        self._workers: dict[str, Worker] = {}
        self._held: dict[str, Pod] = {}  # neither admitted nor rejected: to be added again
        self._saves: dict[str, Timer] = {}  # of those that are held because nothing could be saved
        self._to_preempt: set[str] = set()
        self._mirrors: dict[str, Pod] = {}

    # ------------------------------------------------------------------ what others ask

    def resize(self, uid: str, trigger: str) -> None:
        """Allocation has decided about a resize of this pod: its worker is to look, before others tell of it. `trigger`
        is what made it decide."""
        log.debug("a resize was decided about uid=%s trigger=%s", uid, trigger)
        worker = self._workers.get(uid)
        if worker is not None:
            worker.go_first()
        self.add_again(uid)

    def live(self, uid: str) -> LivePod | None:
        """What ran of this pod when its worker last looked; None before."""
        worker = self._workers.get(uid)
        return None if worker is None else worker.live

    def wake(self, uid: str) -> None:
        """Something happened to this pod; have its worker look. One that is not admitted yet is tried again."""
        worker = self._workers.get(uid)
        if worker is not None:
            worker.wake()
        self.add_again(uid)

    def listed(self, uid: str, states: Mapping[str, str]) -> None:
        """Does what `wake` does, unless the worker has seen these states of sandboxes and containers, by id."""
        worker = self._workers.get(uid)
        if worker is not None:
            worker.listed(states)
        self.add_again(uid)

    def fail(self, uid: str, failure: Failure) -> None:
        """Have a pod end because the node cannot keep it."""
        worker = self._workers.get(uid)
        if worker is not None:
            worker.fail(failure)

    def preempt(self, uid: str) -> None:
        """Have a pod end for a critical one. It may have been admitted this moment and have no worker yet."""
        worker = self._workers.get(uid)
        if worker is not None:
            worker.preempt()
        else:
            self._to_preempt.add(uid)

    def wake_all(self) -> None:
        for uid in (*self._workers, *self._held):
            self.wake(uid)

    def uids(self) -> set[str]:
        """The pods that have a worker, whatever state they are in."""
        return set(self._workers)

    def pods(self) -> list[Pod]:
        return [worker.pod for worker in self._workers.values()]

    def told(self) -> Iterator[Pod]:
        """Pods with the status that their workers tell of them, which the API may not have yet."""
        return (replace(worker.pod, status=worker.status) for worker in self._workers.values())

    def active(self) -> Iterator[Pod]:
        """The pods that hold or will hold something of the node."""
        return (worker.pod for worker in self._workers.values() if worker.active)

    # ------------------------------------------------------------------ static pods

    def add_static(self, pod: Pod) -> None:
        self.changes.put_nowait(Added(pod))

    def drop_static(self, pod: Pod) -> None:
        self.changes.put_nowait(Deleted(pod))

    def shown(self, uid: str, mirror: Pod | None) -> None:
        """What the API has of the static pod of this UID."""
        self._mirrors.pop(uid, None)
        if mirror is not None:
            self._mirrors[uid] = mirror
        worker = self._workers.get(uid)
        if worker is not None:
            worker.shown(mirror)

    # ------------------------------------------------------------------ what the manager keeps here

    def waiting_changes(self) -> list[PodChange]:
        """What has come and was not taken yet."""
        found = []
        while not self.changes.empty():
            found.append(self.changes.get_nowait())
        return found

    def mirror(self, uid: str) -> Pod | None:
        """What the API was last seen to have of a static pod."""
        return self._mirrors.get(uid)

    def begin(self, uid: str, worker: Worker) -> None:
        """This worker is the pod's from now on; it has to end at once if that was asked before."""
        if uid in self._to_preempt:
            self._to_preempt.discard(uid)
            worker.preempt()
        self._workers[uid] = worker

    def end(self, uid: str) -> None:
        """Nothing of the pod is left."""
        del self._workers[uid]
        self._to_preempt.discard(uid)

    def hold(self, pod: Pod) -> None:
        """The pod waits: it is neither admitted nor rejected."""
        self._held[pod.metadata.uid] = pod

    def held(self, uid: str) -> bool:
        return uid in self._held

    def release(self, uid: str) -> Pod | None:
        """The pod waits no longer."""
        return self._held.pop(uid, None)

    def add_again_by(self, uid: str, timer: Timer) -> None:
        """The timer calls `add_again`, unless something else does so before."""
        self._saves[uid] = timer

    def add_again(self, uid: str) -> None:
        """If the pod waits, it is tried once more."""
        if timer := self._saves.pop(uid, None):
            timer.cancel()
        if uid in self._held:
            self.changes.put_nowait(RetryAdmission(uid))

    def close(self) -> None:
        for timer in self._saves.values():
            timer.cancel()


class AllocatedPods(msgspec.Struct, frozen=True):
    """The pods that this node knows, at their allocated sizes."""

    known: KnownPods
    allocation: AllocationManager

    def all(self) -> Iterator[Pod]:
        """The pods with their newest status, whether the API has it or not."""
        return (replace(pod, spec=self.allocation.allocated(pod).spec) for pod in self.known.told())

    def active(self) -> Iterator[Pod]:
        """Those that hold or will hold something of the node."""
        return map(self.allocation.allocated, self.known.active())
