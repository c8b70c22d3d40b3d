"""What a real Kubernetes 1.36 node did on resizes, replayed on a private containerd and real cgroups."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kubelet.harness import IDENTITY
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import Cgroups, Layout
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.mounter import TmpfsMounter
from podfit.kubelet.kubelet import Kubelet
from podfit.kubelet.node.machine import memory_bytes
from podfit.kubelet.probes.node_network import NodeReach
from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.cri.health import check_health
from podfit.net.system import SystemClock
from support.background import beside
from support.behaviour import FILE, NODE, Replay, allocatable, scenarios
from support.clock import at_rest
from support.eventually import eventually_async
from support.golden import Case, needs, replaying
from support.server import running_server

pytestmark = [pytest.mark.node, needs(FILE)]
SECONDS = 30
USED = 150_000_000


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[tuple[Client, Cgroups]]:
    """An administrator's client, on a server with one node of the recorded size, and the node's cgroups."""
    clock = SystemClock()
    containerd = Containerd(tmp_path / "containerd", sandbox_image=images.PAUSE, clock=clock)
    await containerd.start()
    runtime = CRIRuntime(containerd.places.socket, containerd.importer)
    for recipe in (images.pause_recipe(), images.busybox_recipe()):
        await runtime.import_archive(images.archive(recipe, tmp_path))
    cgroups = detect(Layout(f"/podfit-test-{containerd.places.tag}")).cgroups
    size = {name: Quantity.parse(amount) for name, amount in allocatable().items()}
    config = KubeletConfig(name=NODE, root=tmp_path / "kubelet", host_ip="127.0.0.1", capacity=size, allocatable=size)
    async with running_server(tmp_path, clock=clock, certificate=True) as server:
        kubelet = Kubelet(
            client=Client(Local(server.api.handler, IDENTITY)),
            runtime=runtime,
            cgroups=cgroups,
            config=config,
            machine=Machine(memory=memory_bytes(), cgroup=cgroups.version),
            mounter=TmpfsMounter(),
            clock=clock,
            reach=NodeReach(check_health),
        )
        await kubelet.start()
        yield server.client, cgroups
        await kubelet.stop(stop_pods=True)
    await runtime.close()
    await containerd.stop()


async def wait(holds: Callable[[], object], what: str) -> None:
    async def look() -> object:
        return holds()

    await eventually_async(look, within=SECONDS, what=what, every=0.005)


def used(cgroups: Cgroups) -> int:
    return sum(cgroups.memory_usage(pod.path) or 0 for pod in cgroups.list_pods())


async def no_later(milliseconds: int) -> None:
    """A request follows as soon as what went before it has come to rest; ours may be faster than the recording."""


@replaying(FILE, scenarios)
@pytest.mark.row("R-094", "R-095", "R-096", "R-098", "R-111", "R-143", "R-146", "R-164", "R-165")
async def test_a_recorded_resize(case: Case, stage: tuple[Client, Cgroups]) -> None:
    client, cgroups = stage
    replay = Replay(client, SystemClock(), wait, case)
    async with beside(*(informer.run() for informer in replay.informers)):
        await replay.set_up()
        if "head -c" in str(case["pod"]):
            await wait(lambda: used(cgroups) >= USED, "the container never filled its memory")
        await replay.play(no_later)
        await at_rest()
        assert not (problems := replay.problems()), "\n".join(problems)
