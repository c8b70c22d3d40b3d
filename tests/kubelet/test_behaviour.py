"""What a real Kubernetes 1.36 node did on resizes, step by step, replayed on the simulated runtime and a fake clock."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import IDENTITY
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.mounter import DirectoryMounter
from podfit.kubelet.kubelet import Kubelet
from podfit.kubelet.runtime.container_network import SimulatedReach
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from support.background import beside
from support.behaviour import FILE, NODE, Replay, allocatable, everything, scenarios
from support.clock import FakeClock
from support.golden import Case, needs, replaying
from support.server import running_server

pytestmark = [needs(FILE)]
USED = 150_000_000
LIMITED = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}
CALL_SECONDS = 0.05  # what a runtime takes to carry out a change: long enough for a watch to see it in progress


class Simulated:
    """A node that runs nothing, and a clock that moves as the recording did."""

    def __init__(self, root: Path, client: Client, clock: FakeClock) -> None:
        self.clock = clock
        self.cgroups = MemoryCgroups()
        self.runtime = SimulatedRuntime(clock, self.cgroups)
        self.runtime.delays = dict.fromkeys(("update_container_resources", "stop_container"), CALL_SECONDS)
        size = {name: Quantity.parse(amount) for name, amount in allocatable().items()}
        config = KubeletConfig(name=NODE, root=root, host_ip="10.0.0.1", capacity=size, allocatable=size)
        self.kubelet = Kubelet(
            client=client,
            runtime=self.runtime,
            cgroups=self.cgroups,
            config=config,
            machine=Machine(memory=size["memory"].value()),
            mounter=DirectoryMounter(),
            clock=clock,
            reach=SimulatedReach(),
            runtime_name="simulated",
        )

    async def wait(self, holds: Callable[[], object], what: str) -> None:
        """Time moves on only when nothing more happens without it, and by at most ten seconds."""
        for _ in range(200):
            if holds():
                await self.rest()
                return
            await self.rest()
            await self.clock.advance(CALL_SECONDS)
        raise AssertionError(what)

    async def rest(self) -> None:
        await self.clock.settle()

    async def use_memory(self) -> None:
        for container in await self.runtime.list_containers():
            self.runtime.use(container.id, USED)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[tuple[Simulated, Client]]:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock, certificate=True) as server:
        node = Simulated(tmp_path / "node", Client(Local(server.api.handler, IDENTITY)), clock)
        await node.kubelet.start()
        yield node, server.client
        await node.kubelet.stop(stop_pods=False)
        await node.runtime.close()


@replaying(FILE, scenarios)
@pytest.mark.row("R-094", "R-095", "R-096", "R-098", "R-111", "R-143", "R-146", "R-179")
async def test_a_recorded_resize(case: Case, stage: tuple[Simulated, Client]) -> None:
    node, client = stage
    async with following(Replay(client, node.clock, node.wait, case)) as replay:
        await replay.set_up()
        if "head -c" in str(case["pod"]):
            await node.use_memory()
        began = node.clock.monotonic()

        async def at(milliseconds: int) -> None:
            await node.clock.advance(max(0.0, began + milliseconds / 1000 - node.clock.monotonic()))

        await replay.play(at)
        await node.clock.advance(0.5)
        await node.rest()
        assert not (problems := replay.problems()), "\n".join(problems)


async def test_a_recorded_refusal_of_a_static_pod(stage: tuple[Simulated, Client]) -> None:
    """Its answer is all that was recorded."""
    _, client = stage
    case = next(recorded for recorded in everything() if recorded["id"] == "static-pod")
    name = case["message"].split('"')[1]
    mirror = {"kubernetes.io/config.mirror": "hash", "kubernetes.io/config.source": "file"}
    spec = {"nodeName": NODE, "containers": [{"name": "c1", "image": "app:1", "resources": LIMITED}]}
    pod = {"metadata": {"name": name, "namespace": "default", "annotations": mirror}, "spec": spec}
    await client.create(convert(pod, Pod))
    change = {"spec": {"containers": [{"name": "c1", "resources": {"limits": {"cpu": "2"}}}]}}
    with pytest.raises(ApiError) as refused:
        await client.patch(Pod, name, "default", change, subresource="resize")
    assert (refused.value.code, refused.value.reason, refused.value.message) == (
        case["code"],
        case["reason"],
        case["message"],
    )


# ---------------------------------------------------------------------- what no recording shows


def plain(**spec: Any) -> Case:
    """A scenario to be made up as it goes."""
    container = {"name": "c1", "image": "app:1", "resources": LIMITED, **spec.pop("container", {})}
    return {
        "id": "plain",
        "pod": {"metadata": {"name": "web"}, "spec": {"containers": [container], **spec}},
        "otherPods": [],
        "requests": [],
        "podSequence": [],
        "events": [],
    }


async def resize(replay: Replay, cpu: str) -> None:
    change = {"spec": {"containers": [{"name": "c1", "resources": {"limits": {"cpu": cpu}}}]}}
    await replay.client.patch(Pod, "web", "default", change, subresource="resize")


@pytest.mark.row("R-121", "R-122")
async def test_a_decision_is_told_with_its_generation_also_when_a_turn_is_under_way(
    stage: tuple[Simulated, Client],
) -> None:
    node, client = stage
    async with following(Replay(client, node.clock, node.wait, plain())) as replay:
        await replay.create()
        await node.wait(lambda: replay.states[-1]["phase"] == "Running", "it never ran")
        node.runtime.delays["container_status"] = 1.0
        for cpu in ("2", "3", "4"):
            await resize(replay, cpu)
            await node.rest()
            await node.clock.advance(0.3)
        await node.clock.advance(10)
        await node.wait(lambda: not replay.states[-1]["resizeConditions"], "it never came to an end")
    seen = [
        (state["observedGeneration"], condition["observedGeneration"])
        for state in replay.states
        for condition in state["resizeConditions"]
    ]
    assert seen
    assert all(told >= decided for told, decided in seen), seen
    assert replay.states[-1]["observedGeneration"] == 4


async def test_a_pod_that_is_over_keeps_the_size_with_which_it_ended(stage: tuple[Simulated, Client]) -> None:
    """As recorded (`succeeded-pod`), and also when the resize comes while its sandbox is still being stopped."""
    node, client = stage
    case = plain(restartPolicy="Never", container={"command": ["true"]})
    node.runtime.delays["stop_sandbox"] = 5.0
    async with following(Replay(client, node.clock, node.wait, case)) as replay:
        await replay.create()
        await node.wait(lambda: replay.states[-1]["phase"] == "Succeeded", "it never ended")
        ended = replay.states[-1]
        await resize(replay, "2")
        await node.wait(lambda: replay.states[-1]["generation"] == 2, "the resize was not taken")
        await node.clock.advance(10)
        await node.rest()
    assert replay.states[-1] == {**ended, "generation": 2}
    assert [event["reason"] for event in replay.events][-1] == "ResizeStarted"


@asynccontextmanager
async def following(replay: Replay) -> AsyncIterator[Replay]:
    async with beside(*(informer.run() for informer in replay.informers)):
        yield replay
