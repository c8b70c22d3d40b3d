"""The scheduler beside a real API server, time moved by hand."""

import asyncio

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from support.scheduling import World

UNHELPFUL = (
    "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


async def test_a_pod_is_bound_and_told_about(world: World) -> None:
    await world.node("n1")
    await world.pod("a")
    pod = await world.until("a", lambda pod: pod.spec.node_name == "n1")
    assert [(condition.type, condition.status) for condition in pod.status.conditions] == [("PodScheduled", "True")]
    await world.rest()
    assert await world.events() == [("Scheduled", "Successfully assigned default/a to n1")]


async def test_a_pod_that_fits_nowhere_says_why_and_goes_when_a_node_comes(world: World) -> None:
    await world.node("n1", cpu="500m")
    await world.pod("a")
    assert await world.waits("a") == f"0/1 nodes are available: 1 Insufficient cpu. {UNHELPFUL}"
    await world.node("n2")
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
    assert await world.waits("a") == f"0/1 nodes are available: 1 node(s) were unschedulable. {UNHELPFUL}"
    await world.client.patch(Node, "n1", "", {"spec": {"unschedulable": None}})
    await world.until("a", lambda pod: pod.spec.node_name == "n1")
