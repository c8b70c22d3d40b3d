"""Rollouts in place whose controllers are killed at any write: each pod has one owner all the time, and none is lost.

The node here grants a resize at once, after it was under way or deferred, or never, by chance of a seed.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.nodes.types import Node as NodeObject
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.meta.owners import controller_of
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.core.times import format_time
from podfit.decide.pod.resize_state import CONDITIONS, DEFERRED, IN_PROGRESS, INFEASIBLE, PENDING
from podfit.decide.workload.daemon.nodes import node_of
from podfit.decide.workload.deployment.revisions import HASH as TEMPLATE_HASH
from podfit.decide.workload.history import HASH
from support.clock import FakeClock
from support.killed_controllers import Node, controllers, until, workload
from support.server import Server, running_server

SIZE = 4
KINDS = (Deployment, StatefulSet, DaemonSet)
STAGES = {"done": ("",), "under way": (IN_PROGRESS, ""), "deferred": (DEFERRED, ""), "infeasible": (INFEASIBLE,)}


class GrantingNode(Node):
    """Also binds pods, and says of each resize what chance has it say."""

    def __init__(self, server: Server, clock: FakeClock, random: Random) -> None:
        super().__init__(server, clock)
        self._random, self._stages = random, dict[tuple[str, int], list[str]]()
        self.infeasible, self.owners = set[str](), set[int]()

    async def _look(self, seen: Pod) -> None:
        self.owners.add(sum(bool(reference.controller) for reference in seen.metadata.owner_references))
        pod = self._pods.get(seen.metadata.name, "default")
        try:
            if pod is not None and not pod.metadata.deletion_timestamp and not pod.spec.node_name:
                await self._server.client.bind(
                    "default", pod.metadata.name, node_of(pod) or "n-0", uid=pod.metadata.uid
                )
            await super()._look(seen)
            if pod is not None and not pod.metadata.deletion_timestamp and pod.status.phase == "Running":
                await self._judge(pod)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def _judge(self, pod: Pod) -> None:
        key = pod.metadata.uid, pod.metadata.generation
        if key not in self._stages:
            self._stages[key] = list(STAGES[self._random.choice((*STAGES, "done")) if key[1] > 1 else "done"])
        if not (left := self._stages[key]):
            return
        stage, kept = left[0], tuple(one for one in pod.status.conditions if one.type not in CONDITIONS)
        if stage:
            kind, reason = (IN_PROGRESS, "") if stage == IN_PROGRESS else (PENDING, stage)
            stamp = format_time(self._clock.now())
            said = PodCondition(
                type=kind, status="True", reason=reason, last_transition_time=stamp, observed_generation=key[1]
            )
            kept = (*kept, said)
        status = replace(pod.status, observed_generation=key[1], conditions=kept)
        await self._server.client.update_status(replace(pod, status=status))
        del left[0]
        if stage == INFEASIBLE:
            self.infeasible.add(key[0])


class Course:
    """Changes of the size of pods, and of their number, with controllers that are killed at random writes."""

    def __init__(self, server: Server, clock: FakeClock, kind: type[Any], seed: int, *, foreign: bool) -> None:
        self._server, self._clock, self._kind, self._random = server, clock, kind, Random(seed)
        self._foreign = foreign
        self._node, self._size, self._cpu = GrantingNode(server, clock, Random(seed + 1)), SIZE, "1"
        self.kills = self.kept = 0

    async def play(self, rounds: int) -> None:
        node = asyncio.create_task(self._node.run())
        for number in range(SIZE):
            await self._add_node(f"n-{number}")
        await self._server.client.create(asking(workload(self._kind, SIZE)))
        await self._through()
        for _ in range(rounds):
            before, self._node.fewest, self._node.infeasible = await self._uids(), self._size, set()
            scaled = self._kind is not DaemonSet and self._random.random() < 0.2
            self._cpu = self._random.choice([cpu for cpu in "1234" if cpu != self._cpu])
            sized = {"name": "c", "resources": {"requests": {"cpu": self._cpu}}}
            spec: dict[str, Any] = {"template": {"spec": {"containers": [sized]}}}
            if scaled:
                self._size = self._random.randint(2, 6)
                spec["replicas"] = self._size
            await self._server.client.patch(self._kind, "w", "default", {"spec": spec})
            await self._through()
            after = await self._uids()
            if not scaled:
                assert before - after <= self._node.infeasible, "only those that could not be resized are replaced"
                assert len(after) == len(before)
                assert self._node.fewest >= self._size - 1, "what may be unavailable"
                assert self._node.most <= self._size + 1
                self.kept += len(before & after)
            self._node.most = 0
        assert self._node.owners == {1}, "never two controllers, never none"
        node.cancel()
        await asyncio.gather(node, return_exceptions=True)

    async def _add_node(self, name: str) -> None:
        """With room for everything, and no taint, which only its kubelet would take off."""
        made = await self._server.client.create(NodeObject(metadata=ObjectMeta(name=name)))
        room = {"cpu": Quantity.of(100)}
        status = replace(made.status, capacity=room, allocatable=room)
        made = await self._server.client.update_status(replace(made, status=status))
        await self._server.client.update(replace(made, spec=replace(made.spec, taints=())))

    async def _through(self) -> None:
        for _ in range(80):
            async with controllers(self._server, self._clock, foreign=self._foreign):
                revision = self._server.context.store.revision + self._random.randint(1, 5)
                self.kills += 1
                if not await until(self._server, self._clock, revision):
                    break
        async with controllers(self._server, self._clock, foreign=self._foreign):
            await self._clock.advance(400)
            await self._clock.settle()
        await self._settled()

    async def _settled(self) -> None:
        pods = (await self._server.client.list(Pod, "default")).items
        requested = [str(pod.spec.containers[0].resources.requests["cpu"]) for pod in pods]
        assert requested == [self._cpu] * self._size
        status = (await self._server.client.get(self._kind, "w", "default")).status
        if self._kind is DaemonSet:
            numbers = status.current_number_scheduled, status.updated_number_scheduled, status.number_available
        else:
            numbers = status.replicas, status.updated_replicas, status.available_replicas
        assert numbers == (self._size,) * 3
        sets = {one.metadata.name: one for one in (await self._server.client.list(ReplicaSet, "default")).items}
        assert not any("podfit.dev/pods-held" in one.metadata.annotations for one in sets.values())
        assert sum(one.spec.replicas or 0 for one in sets.values()) == (self._size if sets else 0)
        for pod in pods:
            owner = controller_of(pod.metadata)
            assert owner is not None
            label = pod.metadata.labels[TEMPLATE_HASH if sets else HASH]
            assert label == (sets[owner.name].metadata.labels[TEMPLATE_HASH] if sets else label)
        assert len({controller_of(pod.metadata) for pod in pods}) == 1

    async def _uids(self) -> set[str]:
        return {pod.metadata.uid for pod in (await self._server.client.list(Pod, "default")).items}


def asking(made: Any) -> Any:
    """To be rolled out in place, with a size that can be changed."""
    template = made.spec.template
    (container,) = template.spec.containers
    container = replace(container, resources=ResourceRequirements(requests={"cpu": Quantity.of(1)}))
    template = replace(template, spec=replace(template.spec, containers=(container,)))
    meta = replace(made.metadata, annotations={"podfit.dev/rollout": "in-place"})
    return replace(made, metadata=meta, spec=replace(made.spec, template=template))


async def course(tmp_path: Path, kind: type[Any], seed: int, rounds: int, *, foreign: bool = False) -> tuple[int, int]:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        played = Course(server, clock, kind, seed, foreign=foreign)
        await played.play(rounds)
        return played.kills, played.kept


@pytest.mark.parametrize("kind", KINDS)
async def test_rollouts_in_place_survive_kills_at_random(tmp_path: Path, kind: type[Any]) -> None:
    kills, kept = await course(tmp_path, kind, 1, 3)
    assert kills > 10
    assert kept > 0


@pytest.mark.parametrize("kind", KINDS)
async def test_rollouts_under_controllers_that_know_nothing_of_them_survive_kills(
    tmp_path: Path, kind: type[Any]
) -> None:
    kills, kept = await course(tmp_path, kind, 1, 3, foreign=True)
    assert kills > 10
    assert kept > 0


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
async def test_rollouts_in_place_survive_kills_a_thousand_times(
    tmp_path: Path, kind: type[Any], figure: Callable[[str, object], None]
) -> None:
    """1,000 seeds, of each a new size in the template while controllers are killed after a random number of writes, and
    the node grants, defers or refuses each resize by chance. Only pods that cannot be resized are replaced, within what
    may be unavailable; each has exactly one owner in every state that was stored; all end with their size."""
    played = [await course(tmp_path / str(seed), kind, seed, 1) for seed in range(1000, 2000)]
    figure("kills", sum(kills for kills, _ in played))
    figure("pods kept", sum(kept for _, kept in played))


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
async def test_rollouts_under_foreign_controllers_survive_kills_many_times(
    tmp_path: Path, kind: type[Any], figure: Callable[[str, object], None]
) -> None:
    """200 seeds of the same, where controllers act as upstream's, and the controller in-place-rollout beside them
    resizes and relabels; both are killed together."""
    played = [await course(tmp_path / str(seed), kind, seed, 1, foreign=True) for seed in range(3000, 3200)]
    figure("kills", sum(kills for kills, _ in played))
    figure("pods kept", sum(kept for _, kept in played))
