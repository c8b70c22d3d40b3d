"""`Controller`: informers that enqueue keys, and workers that call `reconcile`.

How to write one:

    class DaemonSetController(Controller[Key]):
        def __init__(self, client, *, informers, recorder, clock):
            self._daemons, self._pods = informers.of(DaemonSet), informers.of(Pod)    # shared, never one's own
            super().__init__(clock, self._daemons, self._pods, workers=2)
            self._daemons.add_handler(...)                     # handlers only name keys: self.queue.add(key_of(obj))
        async def reconcile(self, key): ...

1. `informers` (`client.informers.Informers`) is the process's own; its `run` is one of the process's loops, not the
   controller's. `client` writes, as the controller's own account.
2. A reconcile reads the informers' copies, asks a pure function in `decide/workload/` what to do, and writes. It is
   called again after a failure, with growing pauses, so it may simply raise; a conflict is such a failure.
3. Copies are a moment behind what was just written. What must not be done twice meanwhile, as making pods, is awaited
   by `expectations.Expectations`; a status is written with the version it was made from.
4. What is decided about many objects is decided `beside` the event loop (`net/loop_turns.py`), and the key rests.
5. Pods and their like belong to whoever `decide.workload.claims` says; `owners.Owned` finds and claims them. They are
   made and ended by `pod_control.PodControl`, many at once by `slow_start.slow_start`.
6. Composition is a line in `process/control/controllers.py`, its name one in `process/controllers_options.py`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object
from podfit.client.informer import Informer
from podfit.client.workqueue import FIRST_DELAY, WorkQueue, one_share
from podfit.core.clock import Clock
from podfit.net.loop_turns import MANY

K = TypeVar("K", bound=Hashable)
Key: TypeAlias = tuple[str, str]
"""Namespace and name."""
REST_SECONDS = 1e-4
"""For each of many objects that a reconcile looked at: about ten times what it took."""
BY_NAMESPACE = "namespace"
BY_NODE = "node"
"""The names of indexes that several may ask for, made with `by_namespace` and, of pods, with `by_node`."""


class Controller(ABC, Generic[K]):
    """Subclasses hand the informers they read to `super().__init__`, and add keys in handlers."""

    def __init__(
        self,
        clock: Clock,
        *informers: Informer[Any],
        workers: int = 1,
        retry: float = FIRST_DELAY,
        share: Callable[[K], Hashable] = one_share,
    ) -> None:
        """`workers` is how many keys are worked on at once; one key never is by two. `retry`: seconds after a first
        failure, twice as many after each that follows. Keys take turns by their `share`."""
        self.queue: WorkQueue[K] = WorkQueue(clock, first=retry, share=share)
        self._followed, self._workers = informers, workers

    @abstractmethod
    async def reconcile(self, key: K) -> float | None:
        """Bring one key to its desired state; seconds after which to look again, or None."""

    def rest(self, key: K, objects: int) -> None:
        """After a look at many objects the next one at the key is not at once: others are looked at, too."""
        if objects > MANY:
            self.queue.rest(key, objects * REST_SECONDS)

    async def run(self) -> None:
        """Work until cancelled, from the moment that the informers have been read once."""
        await asyncio.gather(*(informer.synced.wait() for informer in self._followed))
        await self.queue.run(self.reconcile, workers=self._workers)


def key_of(obj: Object) -> Key:
    return obj.metadata.namespace, obj.metadata.name


def namespace_of(key: Key) -> str:
    return key[0]


def by_namespace(obj: Object) -> Iterable[str]:
    return (obj.metadata.namespace,)


def by_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()
