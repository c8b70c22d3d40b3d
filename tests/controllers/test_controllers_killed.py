"""Controllers that are ended at any write of a rollout or a drain and begun anew: no pod is lost or doubled.

A controller keeps nothing that the API could not tell it again, so to end its task between two writes is what SIGKILL
is to its process; the writes under way are the server's. `e2e/test_controllers_sigkilled.py` kills the process.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, encode
from podfit.api.meta.owners import controller_of
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.policy.v1.types import Eviction, PodDisruptionBudget
from podfit.client.informers import Informers
from podfit.core.errors import ApiError
from podfit.process.control.workloads import workloads
from podfit.process.controllers_options import CONTROLLERS, MAKERS
from support.clock import FakeClock
from support.killed_controllers import LABELS, Node, controllers, until, versions, workload
from support.server import Server, running_server

SIZE = 4
TOO_MANY_REQUESTS = 429


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
                assert versions(found) == [version] * size
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


class Course:
    """Rollouts, changes of size and drains of one workload, with controllers that are killed at random writes."""

    def __init__(self, server: Server, clock: FakeClock, kind: type[Any], seed: int) -> None:
        self._server, self._clock, self._kind, self._random = server, clock, kind, Random(seed)
        self._node, self._version, self._size = Node(server, clock), "1", SIZE
        self.kills = 0

    async def play(self, rounds: int) -> None:
        node = asyncio.create_task(self._node.run())
        await self._server.client.create(workload(self._kind, SIZE))
        spec = {"selector": {"matchLabels": LABELS}, "maxUnavailable": 1}
        budget = convert({"metadata": {"name": "b", "namespace": "default"}, "spec": spec}, PodDisruptionBudget)
        await self._server.client.create(budget)
        await self._through(set())
        for _ in range(rounds):
            await self._random.choice((self._roll, self._scale, self._drain, self._drain))()
        node.cancel()
        await asyncio.gather(node, return_exceptions=True)

    async def _roll(self) -> None:
        self._version = str(int(self._version) + 1)
        template = {"template": {"metadata": {"annotations": {"v": self._version}}}}
        await self._server.client.patch(self._kind, "w", "default", {"spec": template})
        await self._through(set())

    async def _scale(self) -> None:
        self._size = self._random.randint(2, 6)
        await self._server.client.patch(self._kind, "w", "default", {"spec": {"replicas": self._size}})
        self._node.most = 0
        await self._through(set(), scaled=True)

    async def _drain(self) -> None:
        """Of all that is there now, whatever the budget lets go, until all of it went."""
        self._node.fewest = self._size
        await self._through({pod.metadata.uid for pod in await self._pods()})
        assert self._node.fewest >= self._size - 1, "the budget"

    async def _through(self, drained: set[str], *, scaled: bool = False) -> None:
        for _ in range(80):
            async with controllers(self._server, self._clock):
                quiet = not await until(
                    self._server, self._clock, self._server.context.store.revision + self._random.randint(1, 9)
                )
                self.kills += 1
                left = await self._evict(drained)
                if quiet and not left:
                    break
        async with controllers(self._server, self._clock):
            await self._clock.advance(120)
            await self._clock.settle()
        found = await self._pods()
        assert versions(found) == [self._version] * self._size
        assert not drained & {pod.metadata.uid for pod in found}
        assert len({controller_of(pod.metadata) for pod in found}) == 1
        if not scaled:
            surge = -(-self._size // 4) if self._kind is Deployment else 0
            assert self._node.most <= max(self._size, SIZE) + surge, "never more than a rollout may have"
        self._node.most = 0

    async def _evict(self, uids: set[str]) -> bool:
        """Whether some are there still."""
        left = False
        for pod in await self._pods():
            if pod.metadata.uid not in uids:
                continue
            left = True
            name = pod.metadata.name
            body = encode(Eviction(metadata=ObjectMeta(name=name, namespace="default")))
            try:
                await self._server.client.request("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", body)
            except ApiError as error:
                if error.code not in (404, TOO_MANY_REQUESTS):
                    raise
        return left

    async def _pods(self) -> list[Pod]:
        return list((await self._server.client.list(Pod, "default")).items)


async def course(tmp_path: Path, kind: type[Any], seed: int, rounds: int) -> int:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        played = Course(server, clock, kind, seed)
        await played.play(rounds)
        return played.kills


@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
async def test_rollouts_and_drains_survive_kills_at_random(tmp_path: Path, kind: type[Any]) -> None:
    assert await course(tmp_path, kind, 1, 4) > 8


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
async def test_rollouts_and_drains_survive_kills_many_times(
    tmp_path: Path, kind: type[Any], figure: Callable[[str, object], None]
) -> None:
    """20 courses of 10 rollouts, changes of size and drains each, at random; the controllers are ended after a random
    number of writes and begun anew. All converges, no pod is lost, never more are there than the strategy allows, and
    drains never take more than the disruption budget lets go."""
    kills = [await course(tmp_path / str(seed), kind, seed, 10) for seed in range(100, 120)]
    figure("kills", sum(kills))
