"""Controllers that can be ended at any moment, beside an API server and something that stands in for nodes."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.pods import is_ready
from podfit.net.wire import Identity
from podfit.process.control.controllers import rollouts_in_place
from podfit.process.control.workloads import workloads
from podfit.process.identities import MANAGER
from support.background import beside
from support.clock import FakeClock
from support.server import Server

NAMES = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "disruption-controller",
)
LABELS = {"app": "x"}


@asynccontextmanager
async def controllers(server: Server, clock: FakeClock, *, foreign: bool = False) -> AsyncIterator[None]:
    """`foreign`: as upstream's, which do not know of rollouts in place, and the controller in-place-rollout beside."""
    informers = Informers(server.as_identity(Identity(MANAGER)), clock)
    made = workloads(server.as_identity, informers, clock, in_place=not foreign)
    loops = [loop for name in NAMES for loop in made[name]()]
    if foreign:
        loops += rollouts_in_place(lambda _: server.client, clock)
    async with beside(*loops, informers.run()):
        yield


class Node:
    """Runs every pod at once, and ends it when it is asked to; notes the most and the fewest that were there together:
    `most` were not going, `fewest` of those were ready since `fewest` was set.
    """

    def __init__(self, server: Server, clock: FakeClock) -> None:
        self._server, self._clock = server, clock
        self.most, self.fewest = 0, 0
        self._pods = Informer(server.client, Pod, clock=clock, namespace="default")
        self._work: asyncio.Queue[Pod] = asyncio.Queue()
        self._pods.add_handler(add=self._work.put_nowait, update=lambda _, new: self._work.put_nowait(new))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            while True:
                await self._look(await self._work.get())

    async def _look(self, seen: Pod) -> None:
        alive = [pod for pod in self._pods.list() if not pod.metadata.deletion_timestamp]
        self.most, self.fewest = max(self.most, len(alive)), min(self.fewest, sum(map(is_ready, alive)))
        pod = self._pods.get(seen.metadata.name, "default")
        if pod is None or pod.metadata.uid != seen.metadata.uid:
            return
        if pod.metadata.deletion_timestamp:
            try:
                await self._server.client.delete(Pod, pod.metadata.name, "default", grace=0, uid=pod.metadata.uid)
            except ApiError as error:
                if error.code != 404:  # a pod without a node shows itself as going and goes
                    raise
        elif pod.status.phase == "Pending":
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(self._clock.now())}
            status = {"status": {"phase": "Running", "conditions": [ready]}}
            await self._server.client.patch(Pod, pod.metadata.name, "default", status, subresource="status")


def workload(kind: type[Any], replicas: int) -> Any:
    pod = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}}
    spec["template"] = {"metadata": {"labels": LABELS}, "spec": pod}
    more = {"serviceName": "s", "podManagementPolicy": "Parallel"} if kind is StatefulSet else {}
    return convert({"metadata": {"name": "w", "namespace": "default"}, "spec": spec | more}, kind)


def versions(pods: Iterable[Pod]) -> list[str]:
    return [pod.metadata.annotations.get("v", "1") for pod in pods if not pod.metadata.deletion_timestamp]


TURNS = 300
"""Of the event loop without a write, after which time has to pass."""


async def until(server: Server, clock: FakeClock, revision: int) -> bool:
    """Returns when the store has this revision; False when nothing happens any more before."""
    idle = 0
    while server.context.store.revision < revision:
        before = server.context.store.revision
        await asyncio.sleep(0)
        idle = idle + 1 if server.context.store.revision == before else 0
        if idle > TURNS:
            idle = 0
            await clock.advance(0.01)
            await clock.settle()
            if server.context.store.revision == before:
                return False
    return True
