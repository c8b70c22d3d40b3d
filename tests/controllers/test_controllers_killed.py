"""Controllers that are ended at any write of a rollout and begun anew: it converges, no pod is lost or doubled."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.claims import controller_of
from podfit.net.wire import Identity
from podfit.process.identities import MANAGER
from podfit.process.options import CONTROLLERS, MAKERS
from podfit.process.workloads import workloads
from support.clock import FakeClock
from support.server import Server, running_server

NAMES = ("deployment-controller", "replicaset-controller", "statefulset-controller")
LABELS = {"app": "x"}


@asynccontextmanager
async def controllers(server: Server, clock: FakeClock) -> AsyncIterator[None]:
    informers = Informers(server.as_identity(Identity(MANAGER)), clock)
    made = workloads(server.as_identity, informers, clock)
    loops = [loop for name in NAMES for loop in made[name]()]
    tasks = [asyncio.create_task(loop) for loop in (*loops, informers.run())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Node:
    """Runs every pod at once, and ends it when it is asked to; counts who was alive together."""

    def __init__(self, server: Server, clock: FakeClock) -> None:
        self._server, self._clock = server, clock
        self._pods = Informer(server.client, Pod, clock=clock, namespace="default")
        self._work: asyncio.Queue[Pod] = asyncio.Queue()
        self._pods.add_handler(add=self._work.put_nowait, update=lambda _, new: self._work.put_nowait(new))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            while True:
                await self._look(await self._work.get())

    async def _look(self, seen: Pod) -> None:
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


def versions(pods: Iterator[Pod]) -> list[str]:
    return [pod.metadata.annotations.get("v", "1") for pod in pods if not pod.metadata.deletion_timestamp]


async def until(server: Server, clock: FakeClock, revision: int) -> bool:
    """Returns when the store has this revision; False when nothing happens any more before."""
    while server.context.store.revision < revision:
        before = server.context.store.revision
        await asyncio.sleep(0)
        if server.context.store.revision == before:
            await clock.advance(0.01)
            await clock.settle()
            if server.context.store.revision == before:
                return False
    return True


@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
@pytest.mark.parametrize("every", [1, 3, 7])
async def test_a_rollout_survives_its_controllers(tmp_path: Path, kind: type[Any], every: int) -> None:
    clock, size = FakeClock(), 4
    async with running_server(tmp_path, clock=clock) as server:
        node = asyncio.create_task(Node(server, clock).run())
        await server.client.create(workload(kind, size))
        for version in ("1", "2"):
            if version == "2":
                template = {"template": {"metadata": {"annotations": {"v": "2"}}}}
                await server.client.patch(kind, "w", "default", {"spec": template})
            for _ in range(60):
                async with controllers(server, clock):
                    if not await until(server, clock, server.context.store.revision + every):
                        break
            async with controllers(server, clock):
                await clock.advance(120)
                await clock.settle()
                found = (await server.client.list(Pod, "default")).items
                assert versions(iter(found)) == [version] * size
                assert all(controller_of(pod.metadata) is not None for pod in found)
                status = (await server.client.get(kind, "w", "default")).status
                assert (status.replicas, status.updated_replicas, status.ready_replicas) == (size, size, size)
        node.cancel()
        await asyncio.gather(node, return_exceptions=True)


async def test_every_controller_can_be_left_out_by_its_name(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        made = workloads(server.as_identity, Informers(server.client, clock), clock)
    assert set(made) <= set(CONTROLLERS)
    assert set(MAKERS) <= set(made)
