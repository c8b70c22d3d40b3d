"""Every node gets a range of addresses for its pods."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.controllers.node_ipam import COMPONENT, NodeIpamController
from podfit.decide.workload.nodes.ipam import NodeRanges
from support.clock import FakeClock, at_rest
from support.server import Server, running_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as running:
        informers = Informers(running.client, clock)
        recorder = EventRecorder(running.client, component=COMPONENT, clock=clock)
        ranges = NodeRanges.of("10.9.0.0/23", 24)
        controller = NodeIpamController(
            running.client, informers=informers, recorder=recorder, clock=clock, ranges=ranges
        )
        tasks = [asyncio.create_task(loop) for loop in (controller.run(), informers.run(), recorder.run())]
        yield running
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def node(name: str, cidr: str = "") -> Node:
    spec = {"podCIDR": cidr, "podCIDRs": [cidr]} if cidr else {}
    return convert({"metadata": {"name": name}, "spec": spec}, Node)


async def given(server: Server, name: str) -> tuple[str, ...]:
    await at_rest()
    return (await server.client.get(Node, name)).spec.pod_cidrs


async def test_the_lowest_that_is_free_and_one_that_was_named_stays(server: Server) -> None:
    await server.client.create(node("named", "10.9.0.0/24"))
    await server.client.create(node("new"))
    assert (await given(server, "named"), await given(server, "new")) == (("10.9.0.0/24",), ("10.9.1.0/24",))


async def test_nodes_that_come_together_have_different_ones(server: Server) -> None:
    await asyncio.gather(*(server.client.create(node(name)) for name in ("a", "b")))
    assert {await given(server, "a"), await given(server, "b")} == {("10.9.0.0/24",), ("10.9.1.0/24",)}


async def test_a_node_that_none_is_left_for_is_told_so_and_gets_that_of_one_that_goes(server: Server) -> None:
    for name in ("a", "b", "c"):
        await server.client.create(node(name))
        await at_rest()
    assert await given(server, "c") == ()
    events = await server.client.list(Event, "default")
    assert [(e.involved_object.name, e.reason) for e in events.items] == [("c", "CIDRNotAvailable")]
    await server.client.delete(Node, "a")
    assert await given(server, "c") == ("10.9.0.0/24",)
