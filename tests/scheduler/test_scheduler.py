"""The scheduler beside a real API server, time moved by hand (spec section 4)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from podfit.api.codec import convert
from podfit.api.core.events import Event
from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.client.events import EventRecorder
from podfit.core.features import FeatureGates
from podfit.scheduler.scheduler import NAME, Scheduler
from support.clock import FakeClock
from support.server import Server, running_server

MOMENT, MOMENTS = 0.001, 5000  # seconds of real time, and how many of them at most


class World:
    def __init__(self, server: Server, clock: FakeClock) -> None:
        self.server, self.clock, self.client = server, clock, server.client

    async def node(self, name: str, cpu: str = "2", **spec: Any) -> None:
        document = {"metadata": {"name": name}, "spec": spec}
        await self.client.create(convert(document, Node))
        allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        patch = {"status": {"allocatable": allocatable, "capacity": allocatable}}
        await self.client.patch(Node, name, "", patch, subresource="status")

    async def pod(self, name: str, cpu: str = "1", **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        document = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container], **spec}}
        await self.client.create(convert(document, Pod))

    async def resize(self, name: str, cpu: str) -> None:
        patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
        await self.client.patch(Pod, name, "default", patch, subresource="resize")

    async def report(self, name: str, cpu: str, *conditions: dict[str, str]) -> None:
        """What the node says it has allocated and enforces."""
        status = {
            "name": "c", "image": "i", "imageID": "i", "ready": True, "restartCount": 0, "state": {"running": {}},
            "allocatedResources": {"cpu": cpu}, "resources": {"requests": {"cpu": cpu}},
        }  # fmt: skip
        patch = {"status": {"phase": "Running", "containerStatuses": [status], "conditions": list(conditions)}}
        await self.client.patch(Pod, name, "default", patch, subresource="status")

    async def placed(self, name: str) -> str:
        return (await self.client.get(Pod, name, "default")).spec.node_name

    async def until(self, name: str, holds: Callable[[Pod], bool]) -> Pod:
        """The store writes in a thread, so what is waited for needs real moments, though no timer."""
        for _ in range(MOMENTS):
            pod = await self.client.get(Pod, name, "default")
            if holds(pod):
                return pod
            await asyncio.sleep(MOMENT)
        raise AssertionError(f"{name} never got there")

    async def waits(self, name: str) -> str:
        """The reason on a pod that fits nowhere."""
        pod = await self.until(name, lambda pod: bool(pod.status.conditions))
        return pod.status.conditions[0].message

    async def rest(self) -> None:
        """Let everything happen that can without time passing."""
        for _ in range(30):
            await self.clock.settle()
            await asyncio.sleep(MOMENT)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        client = server.as_user("system:kube-scheduler")
        recorder = EventRecorder(client, component=NAME, clock=clock)
        scheduler = Scheduler(client, recorder=recorder, clock=clock, gates=FeatureGates())
        tasks = [asyncio.create_task(scheduler.run()), asyncio.create_task(recorder.run())]
        yield World(server, clock)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_pod_is_bound_and_told_about(world: World) -> None:
    await world.node("n1")
    await world.pod("a")
    pod = await world.until("a", lambda pod: pod.spec.node_name == "n1")
    assert [(each.type, each.status) for each in pod.status.conditions] == [("PodScheduled", "True")]
    await world.rest()
    events = (await world.client.list(Event, "default")).items
    assert [(each.reason, each.message) for each in events] == [("Scheduled", "Successfully assigned default/a to n1")]


async def test_a_pod_that_fits_nowhere_says_why_and_goes_when_a_node_comes(world: World) -> None:
    await world.node("n1", cpu="500m")
    await world.pod("a")
    assert await world.waits("a") == "0/1 nodes are available: 1 Insufficient cpu."
    await world.node("n2")
    await world.rest()
    await world.clock.advance(1)
    await world.until("a", lambda pod: pod.spec.node_name == "n2")


async def test_two_pods_never_take_the_same_room(world: World) -> None:
    await world.node("n1", cpu="1500m")
    await asyncio.gather(world.pod("a"), world.pod("b"))
    await world.rest()
    assert sorted([await world.placed("a"), await world.placed("b")]) == ["", "n1"]


async def test_a_deleted_pod_makes_room(world: World) -> None:
    await world.node("n1", cpu="1")
    await world.pod("a")
    await world.until("a", lambda pod: bool(pod.spec.node_name))
    await world.pod("b")
    await world.waits("b")
    await world.client.delete(Pod, "a", "default", grace=0)
    await world.rest()
    await world.clock.advance(1)
    await world.until("b", lambda pod: pod.spec.node_name == "n1")


async def test_r_081_an_unscheduled_pod_that_is_resized_down_is_placed(world: World) -> None:
    await world.node("n1", cpu="1")
    await world.pod("a", cpu="2")
    await world.waits("a")
    await world.resize("a", "500m")
    await world.until("a", lambda pod: pod.spec.node_name == "n1")


async def test_r_078_a_deferred_growth_counts_at_its_desired_size(world: World) -> None:
    await world.node("n1", cpu="2")
    await world.pod("a", cpu="500m")
    await world.until("a", lambda pod: bool(pod.spec.node_name))
    await world.report("a", "500m")
    await world.resize("a", "1500m")
    await world.report("a", "500m", {"type": "PodResizePending", "status": "True", "reason": "Deferred"})
    await world.pod("b", cpu="1")
    assert "Insufficient cpu" in await world.waits("b")


async def test_r_079_an_infeasible_growth_does_not_count(world: World) -> None:
    await world.node("n1", cpu="2")
    await world.pod("a", cpu="500m")
    await world.until("a", lambda pod: bool(pod.spec.node_name))
    await world.resize("a", "1500m")
    await world.report("a", "500m", {"type": "PodResizePending", "status": "True", "reason": "Infeasible"})
    await world.pod("b", cpu="1")
    await world.until("b", lambda pod: pod.spec.node_name == "n1")


async def test_r_080_r_082_a_shrink_frees_room_only_when_the_node_has_reported_it(world: World) -> None:
    await world.node("n1", cpu="2")
    await world.pod("a", cpu="1500m")
    await world.until("a", lambda pod: bool(pod.spec.node_name))
    await world.report("a", "1500m")
    await world.pod("b", cpu="1")
    await world.waits("b")
    await world.resize("a", "500m")
    await world.rest()
    await world.clock.advance(5)
    await world.rest()
    assert await world.placed("b") == ""
    await world.report("a", "500m")
    await world.rest()
    await world.clock.advance(1)
    await world.until("b", lambda pod: pod.spec.node_name == "n1")


async def test_other_schedulers_pods_and_gated_pods_are_left_alone(world: World) -> None:
    await world.node("n1")
    await world.pod("other", schedulerName="someone-else")
    await world.pod("gated", schedulingGates=[{"name": "wait"}])
    await world.rest()
    assert [await world.placed("other"), await world.placed("gated")] == ["", ""]


async def test_a_cordoned_node_takes_nothing_until_it_is_open_again(world: World) -> None:
    await world.node("n1", unschedulable=True)
    await world.pod("a")
    assert await world.waits("a") == "0/1 nodes are available: 1 node(s) were unschedulable."
    await world.client.patch(Node, "n1", "", {"spec": {"unschedulable": None}})
    await world.rest()
    await world.clock.advance(1)
    await world.until("a", lambda pod: pod.spec.node_name == "n1")
