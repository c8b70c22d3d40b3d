"""Critical pods and all that may happen in between: never over-committed, and none waits for ever (R-117)."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.decide.node.effects import Admitted, Preempting
from podfit.decide.pod.system_priority import SYSTEM_CRITICAL
from support.allocating import Allocating
from support.placed import placed
from support.pods import container, needs
from support.pods import pod as made

pytestmark = pytest.mark.row("R-117")
CAPACITY = 4000
SIZES = st.sampled_from([200, 500, 1000, 1500, 2500])
PRIORITIES = st.sampled_from([None, 5, SYSTEM_CRITICAL, SYSTEM_CRITICAL + 1000])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), SIZES, PRIORITIES),
        st.tuples(st.just("resize"), SIZES, st.integers(0, 9)),
        st.tuples(st.just("victim ends"), st.just(0), st.integers(0, 9)),
        st.tuples(st.just("ends"), st.just(0), st.integers(0, 9)),
    ),
    max_size=25,
)


class World:
    def __init__(self, folder: Path) -> None:
        self.node = Allocating(folder, write=lambda path, data: None)
        self.pods: dict[str, Pod] = {}
        self.held: dict[str, Pod] = {}
        self.made = 0

    async def add(self, cpu: int, priority: int | None) -> None:
        self.made += 1
        pod = placed(made(container("c1", {"cpu": f"{cpu}m"}), name=f"p{self.made}", priority=priority))
        await self.try_in(pod)

    async def try_in(self, pod: Pod) -> None:
        (answer,) = await self.node.add(pod)
        self.held.pop(pod.metadata.uid, None)
        if isinstance(answer, Preempting):
            self.held[pod.metadata.uid] = pod
        elif isinstance(answer, Admitted):
            self.pods[pod.metadata.uid] = pod
            await self.node.settles(pod)

    async def resize(self, cpu: int, pick: int) -> None:
        if self.pods:
            pod = self.pods[sorted(self.pods)[pick % len(self.pods)]]
            await self.node.wants(pod, c1=needs({"cpu": f"{cpu}m"}))

    async def ends(self, uid: str) -> None:
        await self.node.ends(self.pods.pop(uid))

    async def worker(self) -> None:
        """What was granted is actuated, and whoever is asked in again comes."""
        while self.node.synced:
            uid = self.node.synced.pop(0).split()[0]
            if uid in self.held:
                await self.try_in(self.held[uid])
            elif uid in self.pods:
                await self.node.settles(self.pods[uid])

    @property
    def victims(self) -> list[str]:
        return sorted(set(self.node.told_to_end) & self.pods.keys())

    def promised(self) -> int:
        return sum(self.node.cpu(pod) for pod in self.pods.values())


async def _play(folder: Path, steps: list[tuple[str, int, int | None]]) -> None:
    world = World(folder)
    await world.node.manager.sources_ready()
    for what, cpu, which in steps:
        if what == "add":
            await world.add(cpu, which)
        elif what == "resize":
            await world.resize(cpu, which or 0)
        elif what == "victim ends" and world.victims:
            await world.ends(world.victims[(which or 0) % len(world.victims)])
        elif what == "ends" and world.pods:
            await world.ends(sorted(world.pods)[(which or 0) % len(world.pods)])
        await world.worker()
        assert world.promised() <= CAPACITY
        assert len(world.node.told_to_end) == len(set(world.node.told_to_end)), "nobody is told twice"
    while world.victims:
        await world.ends(world.victims[0])
        await world.worker()
        assert world.promised() <= CAPACITY
    assert not world.held, "whoever waited for its victims is in, or was turned away"
    taken = world.promised()
    for uid, pod in world.pods.items():
        condition = world.node.condition(pod)
        if condition is not None and (pod.spec.priority or 0) >= SYSTEM_CRITICAL:
            asks = world.node.desired[uid].spec.containers[0].resources.requests.get("cpu", ZERO).milli()
            assert taken - world.node.cpu(pod) + asks > CAPACITY, "it waits only where there is no room"
    if free := CAPACITY - taken:
        await world.add(free, None)
        assert world.promised() == CAPACITY, "nobody keeps room any more"
    await world.node.manager.close()


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_whatever_happens(steps: list[tuple[str, int, int | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play(Path(folder), steps))
