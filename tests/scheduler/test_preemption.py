"""Room for a pod of higher priority: who goes, what is written on whom, and what is kept meanwhile."""

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta
from podfit.api.policy.v1.types import PodDisruptionBudget, PodDisruptionBudgetSpec
from podfit.api.scheduling.v1.types import PriorityClass
from support.scheduling import World


@pytest.fixture
async def priorities(world: World) -> None:
    await world.client.create(PriorityClass(metadata=ObjectMeta(name="hi"), value=1000))


@pytest.mark.usefixtures("priorities")
async def test_while_a_victim_takes_its_time_the_room_is_kept_and_nobody_else_is_evicted(world: World) -> None:
    await world.node("n1", cpu="3")
    for name in ("a", "b"):
        await world.pod(name, cpu="1")
        await world.until(name, lambda pod: bool(pod.spec.node_name))
        await world.report(name, "1")
    hi = await world.pod("hi", cpu="2", priorityClassName="hi")
    await world.until("hi", lambda pod: pod.status.nominated_node_name == "n1")
    await world.rest()
    victims = [
        pod for pod in (await world.client.list(Pod, "default")).items if pod.metadata.deletion_timestamp is not None
    ]
    assert len(victims) == 1
    reasons = [
        (condition.type, condition.reason)
        for condition in victims[0].status.conditions
        if condition.type == "DisruptionTarget"
    ]
    assert reasons == [("DisruptionTarget", "PreemptionByScheduler")]
    assert ("Preempted", f"Preempted by pod {hi.metadata.uid} on node n1") in await world.events()

    await world.pod("late", cpu="1")  # there is a free CPU, but it is part of what was promised
    await world.stays("late")
    await world.client.delete(Pod, victims[0].metadata.name, "default", grace=0)
    await world.until("hi", lambda pod: pod.spec.node_name == "n1" and not pod.status.nominated_node_name)


@pytest.mark.usefixtures("priorities")
async def test_when_the_promised_pod_goes_away_others_get_the_room(world: World) -> None:
    await world.node("n1", cpu="2")
    await world.pod("gated", cpu="2", priorityClassName="hi", schedulingGates=[{"name": "example.com/wait"}])
    await world.client.patch(Pod, "gated", "default", {"status": {"nominatedNodeName": "n1"}}, subresource="status")
    await world.rest()
    await world.pod("a", cpu="1")
    await world.rest()
    assert await world.placed("a") == "n1"  # a pod behind a gate is promised nothing
    await world.pod("hi", cpu="1500m", priorityClassName="hi")
    await world.until("hi", lambda pod: pod.status.nominated_node_name == "n1" or bool(pod.spec.node_name))
    await world.client.delete(Pod, "hi", "default", grace=0)
    await world.pod("b", cpu="500m")
    await world.until("b", lambda pod: pod.spec.node_name == "n1")


@pytest.mark.usefixtures("priorities")
async def test_a_resize_that_waits_evicts_nobody(world: World) -> None:
    """Upstream 1.36 neither: only pods that are to be placed may preempt."""
    await world.node("n1", cpu="2")
    for name, priority in (("a", ""), ("b", "hi")):
        await world.pod(name, cpu="1", priorityClassName=priority)
        await world.until(name, lambda pod: bool(pod.spec.node_name))
        await world.report(name, "1")
    await world.resize("b", "2")
    await world.report("b", "1", {"type": "PodResizePending", "status": "True", "reason": "Deferred"})
    await world.rest()
    assert (await world.client.get(Pod, "a", "default")).metadata.deletion_timestamp is None


@pytest.mark.usefixtures("priorities")
async def test_a_pod_that_finds_room_elsewhere_gives_back_what_it_was_promised(world: World) -> None:
    await world.node("n1", cpu="2")
    await world.pod("low", cpu="2")
    await world.until("low", lambda pod: bool(pod.spec.node_name))
    await world.report("low", "2")
    await world.pod("hi", cpu="1", priorityClassName="hi")
    await world.until("hi", lambda pod: pod.status.nominated_node_name == "n1")
    await world.node("n2", cpu="1")  # the victim is still there, so this one is used
    await world.until("hi", lambda pod: pod.spec.node_name == "n2")
    await world.client.delete(Pod, "low", "default", grace=0)
    await world.pod("late", cpu="2")
    await world.until("late", lambda pod: pod.spec.node_name == "n1")


@pytest.mark.usefixtures("priorities")
@pytest.mark.parametrize(("guarded", "victim"), [("a", "b"), ("b", "a")])
async def test_a_pod_that_a_budget_protects_stays_when_another_can_go(world: World, guarded: str, victim: str) -> None:
    await world.node("n1", cpu="2")
    for name in ("a", "b"):
        await world.pod(name, cpu="1", labels={"app": name})
        await world.until(name, lambda pod: bool(pod.spec.node_name))
    spec = PodDisruptionBudgetSpec(min_available=1, selector=LabelSelector(match_labels={"app": guarded}))
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="budget", namespace="default"), spec=spec)
    await world.client.create(budget)
    await world.rest()
    await world.pod("hi", cpu="1", priorityClassName="hi")
    await world.until("hi", lambda pod: bool(pod.status.nominated_node_name or pod.spec.node_name))
    await world.rest()
    pods = {pod.metadata.name: pod for pod in (await world.client.list(Pod, "default")).items}
    assert not pods[guarded].metadata.deletion_timestamp
    assert victim not in pods or pods[victim].metadata.deletion_timestamp
