"""A plan counts nodes that are on their way: what it says is what the cluster autoscaler's machine then does."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podfit.answers.facts.ages import age_of
from podfit.answers.facts.budgets import Budgets
from podfit.answers.facts.node_scaling import told_by
from podfit.answers.facts.scheduling import SchedulingState
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.plan.amounts import Amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import PodPlan
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time
from podfit.decide.capacity.settings import AutoscalerSettings, ScaleUpSettings
from support.capacity_world import Group, World, template
from support.node_machine import running


def world_of(**settings: Any) -> World:
    """Two pods fill a node of 4 CPUs, and another one, which a third pod waits for, takes a minute to come."""
    small = Group(name="small", like=template("small"), target=1, most=4)
    world = World(small, settings=AutoscalerSettings(scale_up=ScaleUpSettings(**settings)))
    for name in ("db", "web"):
        pod = world.pod(name, "2", node="small-1", owner=name, spec=_with_priority(name))
        world.pods[name] = replace(pod, status=running(pod, world.stamp(), ready=True))
    world.pod("more", "1500m", owner="more")
    world.run(30)
    assert world.groups["small"].target == 2
    return world


def _with_priority(name: str) -> dict[str, Any]:
    return {"priority": 5} if name == "db" else {}


def planned(world: World, name: str, cpu: str) -> PodPlan:
    text = msgspec.json.encode(world.outlook).decode()
    pods = tuple(world.pods.values())
    snapshot = Snapshot(
        age=age_of("36", "v1.36.2"),
        namespace="shop",
        pods=(world.pods[name],),
        neighbours=tuple(pod for pod in pods if pod.spec.node_name),
        nodes=world.nodes,
        cluster=SchedulingState(nodes=tuple(world.nodes.values()), pods=pods),
        budgets=Budgets(),
        scaling=told_by({"podfit-outlook": text}, parse_time(world.stamp())),
    )
    [answer] = plan(snapshot, ResizeRequest({"cpu": Amount(Quantity.parse(cpu))}, "c")).pods
    return answer


def asks(world: World, name: str, cpu: str) -> None:
    """Somebody resizes it, and its node defers that."""
    pod: Pod = world.pods.pop(name)
    text = (
        f"Node didn't have enough resource: cpu, requested: {Quantity.parse(cpu).milli()}, used: 2000, capacity: 4000"
    )
    told = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": text}
    held = {"cpu": str(pod.spec.containers[0].resources.requests["cpu"]), "memory": "64Mi"}
    container = {"name": "c", "resources": {"requests": held}, "allocatedResources": held}
    conditions = [{**told, "lastTransitionTime": world.stamp()}]
    status = convert({"phase": "Running", "conditions": conditions, "containerStatuses": [container]}, type(pod.status))
    meta = {"annotations": pod.metadata.annotations}
    world.pod(name, cpu, node=pod.spec.node_name, owner=name, spec=_with_priority(name), metadata=meta)
    world.pods[name] = replace(world.pods[name], status=status)


def test_a_resize_that_waits_counts_a_node_that_is_on_its_way() -> None:
    world = world_of()
    answer = planned(world, "db", "3")
    assert answer.verdict == "deferred"
    due = "due by 2026-02-02T02:55:10Z"
    assert answer.nodes == (
        f"waits for a node of group small that is on its way, {due}: shop/web moves there, then it fits"
    )
    asks(world, "db", "3")
    world.run(200)
    assert world.evictions == ["web"]
    assert world.pods["web"].spec.node_name == world.pods["more"].spec.node_name == "small-2"
    assert world.groups["small"].target == 2


def test_a_node_on_its_way_that_is_full_is_not_counted() -> None:
    """The pod that waits for it leaves no room for the neighbour: another node comes."""
    world = world_of()
    world.pod("other", "1", owner="other")
    world.run(20)
    assert planned(world, "db", "3").nodes == ""
    asks(world, "db", "3")
    world.run(200)
    assert world.groups["small"].target == 3


@pytest.mark.parametrize(("cpu", "fits"), [("2", True), ("3", False)])
def test_a_pod_without_a_node_counts_one_that_is_on_its_way(cpu: str, fits: bool) -> None:
    world = world_of()
    world.pod("zeta", "4", owner="zeta")
    answer = planned(world, "zeta", cpu)
    assert answer.verdict == "unschedulable"
    assert answer.nodes.endswith("due by 2026-02-02T02:55:10Z: it fits there") is fits
    world.pod("zeta", cpu, owner="zeta")
    world.run(60)
    assert (world.pods["zeta"].spec.node_name == "small-2") is fits


@pytest.mark.parametrize("shrinks", [True, False])
def test_a_neighbour_that_would_shrink_is_told_where_that_is_on(shrinks: bool) -> None:
    world = world_of(shrinks=shrinks)
    web = world.pods["web"]
    notes = {"podfit.dev/minimum": "cpu=500m"}
    world.pods["web"] = replace(web, metadata=replace(web.metadata, annotations=notes))
    answer = planned(world, "db", "3")
    assert answer.nodes.startswith("the cluster autoscaler shrinks shop/web for it (cpu 2 → 1)") is shrinks
    asks(world, "db", "3")
    world.run(100)
    assert (world.shrunk, world.evictions) == ((["web"], []) if shrinks else ([], ["web"]))


def test_an_outlook_with_amounts_that_are_none_is_not_believed() -> None:
    world = world_of()
    assert world.outlook.coming
    [node] = world.outlook.coming
    bad = replace(world.outlook, coming=(replace(node, free={"cpu": "x"}),))
    scaling = told_by({"podfit-outlook": msgspec.json.encode(bad).decode()}, parse_time(world.stamp()))
    assert "cannot be read" in scaling.problem
