"""Many nodes and pods in one cluster: Deployments whose pods run on simulated nodes, then resizes all over them.

The goal is on this kind of machine (2 cores, quiet): 30,000 pods Running on 1,000 nodes within five minutes and 2 GiB,
then 1,000 resizes settled within 30 seconds. A machine that others use as well takes longer for the same work, so the
times are of the server's CPU; what passed by the clock is said beside it.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from support.up import Up

Figure = Callable[[str, object], None]
TICK = os.sysconf("SC_CLK_TCK")
AT_ONCE = 16


@dataclass(frozen=True)
class Scale:
    nodes: int
    deployments: int
    replicas: int
    resizes: int

    @property
    def pods(self) -> int:
        return self.deployments * self.replicas


@dataclass
class Grown:
    """Seconds by the clock and of the server's CPU for each part, and the most memory that it took, in MiB."""

    ready: tuple[float, float]
    settled: tuple[float, float]
    peak: float


class Server:
    """`podfit up` as the kernel sees it."""

    def __init__(self, pid: int) -> None:
        self._directory = Path(f"/proc/{pid}")

    def cpu(self) -> float:
        fields = (self._directory / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def peak(self) -> float:
        lines = (self._directory / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def deployment(number: int, replicas: int) -> Deployment:
    name = f"web-{number}"
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Deployment)


async def until(client: Client, kind: type[Any], version: str, left: set[str], holds: Callable[[Any], bool]) -> None:
    """Until each object of these names was seen to be so."""
    async for event in client.watch(kind, "default", resource_version=version):
        if event.type != "BOOKMARK" and holds(event.object):
            left.discard(event.object.metadata.name)
            if not left:
                return


async def together(work: Callable[[Any], Any], things: list[Any]) -> None:
    some = asyncio.Semaphore(AT_ONCE)

    async def one(thing: Any) -> None:
        async with some:
            await work(thing)

    await asyncio.gather(*map(one, things))


async def grow(up: Up, scale: Scale, seed: int) -> Grown:
    client, server = load([up.kubeconfig]).client(), Server(up.state()["pid"])
    try:
        page = await client.list(Deployment, "default", limit=1)
        names = {f"web-{number}" for number in range(scale.deployments)}
        began, used = time.monotonic(), server.cpu()
        async with asyncio.TaskGroup() as group:
            waiting = until(
                client,
                Deployment,
                page.resource_version,
                names,
                lambda one: one.status.ready_replicas == scale.replicas,
            )
            group.create_task(waiting)
            await together(client.create, [deployment(number, scale.replicas) for number in range(scale.deployments)])
        ready = time.monotonic() - began, server.cpu() - used

        found = await client.list(Pod, "default")
        assert len(found.items) == scale.pods
        assert all(pod.status.phase == "Running" for pod in found.items)
        assert len({pod.spec.node_name for pod in found.items}) == scale.nodes, "some nodes were left empty"
        chosen = random.Random(seed).sample(found.items, scale.resizes)
        wanted = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "150m"}}}]}}
        generations = {pod.metadata.name: pod.metadata.generation + 1 for pod in chosen}

        def is_settled(pod: Pod) -> bool:
            status = pod.status
            if pod.metadata.name not in generations or status.observed_generation < generations[pod.metadata.name]:
                return False
            actual = status.container_statuses[0].resources
            pending = any(condition.type.startswith("PodResize") for condition in status.conditions)
            return actual is not None and str(actual.requests["cpu"]) == "150m" and not pending

        async def resize(pod: Pod) -> None:
            await client.patch(Pod, pod.metadata.name, "default", wanted, subresource="resize")

        began, used = time.monotonic(), server.cpu()
        async with asyncio.TaskGroup() as group:
            group.create_task(until(client, Pod, found.resource_version, set(generations), is_settled))
            await together(resize, chosen)
        return Grown(ready, (time.monotonic() - began, server.cpu() - used), server.peak())
    finally:
        await client.close()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    up = Up(tmp_path)
    yield up
    up.down()


async def test_many_pods_on_many_nodes(up: Up) -> None:
    scale = Scale(nodes=10, deployments=5, replicas=12, resizes=20)
    await asyncio.to_thread(up.start, "--nodes", str(scale.nodes), node="simulated")
    grown = await grow(up, scale, seed=1)
    assert grown.peak < 300, grown


@pytest.mark.campaign
@pytest.mark.timeout(3600)
async def test_a_thousand_nodes_and_thirty_thousand_pods(up: Up, figure: Figure) -> None:
    """1,000 simulated nodes and 1,000 Deployments of 30 replicas: all 30,000 pods Running after at most 300 s of the
    server's CPU and with at most 2 GiB, then 1,000 resizes settled after at most 30 s of it."""
    scale = Scale(nodes=1000, deployments=1000, replicas=30, resizes=1000)
    await asyncio.to_thread(up.start, "--nodes", str(scale.nodes), node="simulated", timeout=300)
    grown = await grow(up, scale, seed=1)
    figure("all Running after", f"{grown.ready[0]:.0f} s, {grown.ready[1]:.0f} s of CPU")
    figure("resizes settled after", f"{grown.settled[0]:.0f} s, {grown.settled[1]:.0f} s of CPU")
    figure("peak memory", f"{grown.peak:.0f} MiB")
    assert grown.peak <= 2048
    assert grown.ready[1] <= 300
    assert grown.settled[1] <= 30
