"""Waiting resizes as demand: a neighbour shrinks, or moves, or a node comes; and what is said when none of it helps."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.capacity.settings import AutoscalerSettings, ScaleUpSettings
from support.capacity_world import Group, World, recommended, template

START_SECONDS = 0.4
"""From a place to a running container with an address, on the real node (docs/benchmarks.md)."""
DEFERRED = "Node didn't have enough resource: cpu, requested: {}, used: {}, capacity: {}"


def world_of(*nodes: str, most: int = 4, **settings: Any) -> World:
    """Nodes of 4 CPUs in group small, and none yet of 16 in group large."""
    small = Group(name="small", like=template("small"), target=len(nodes) or 1, most=most)
    large = Group(name="large", like=template("large", "16", "32Gi"), most=2)
    return World(small, large, settings=AutoscalerSettings(scale_up=ScaleUpSettings(**settings)))


def waits(world: World, name: str, wanted: str, has: str, *, node: str = "small-1", **more: Any) -> Pod:
    """A pod that asks for more than its node gives; `infeasible` where it never can."""
    infeasible = more.pop("infeasible", False)
    text = DEFERRED.format(int(float(wanted) * 1000), 3000, 4000)
    condition = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Infeasible" if infeasible else "Deferred",
        "message": "Node didn't have enough capacity: cpu" if infeasible else text,
        "lastTransitionTime": world.stamp(),
    }
    held = {"cpu": has, "memory": "64Mi"}
    told = {"name": "c", "resources": {"requests": held}, "allocatedResources": held}
    status = {"phase": "Running", "conditions": [condition], "containerStatuses": [told]}
    return world.pod(name, wanted, node=node, status=status, **more)


def outlook(world: World, name: str) -> tuple[str, str, str]:
    [told] = [pod for pod in world.outlook.pods if pod.pod == name]
    return str(told.act), told.who, told.because


def grants(world: World, name: str) -> None:
    """As its node does once there is room: the pod has what it asks for."""
    pod = world.pods[name]
    world.pods[name] = replace(pod, status=convert({"phase": "Running"}, type(pod.status)))


def test_capacity_a_resize_waits_a_moment_before_it_counts() -> None:
    world = world_of("small-1")
    waits(world, "db", "3", "1", owner="db")
    world.pod("web", "2", node="small-1")
    world.run(20)
    [told] = world.outlook.pods
    assert (told.act, told.who, told.begins) == ("node", "shop/web", "2026-02-02T02:40:30Z")
    assert (world.groups["small"].target, world.evictions) == (1, [])


def test_capacity_what_comes_next_is_told_before_it_counts() -> None:
    """And that is what is done: two that wait on one node do not count on the same pod."""
    world = world_of("small-1", "small-2", "small-3")
    for number in (1, 2):
        waits(world, f"db-{number}", "3", "1", node=f"small-{number}", owner=f"db-{number}")
        world.pod(f"web-{number}", "2", node=f"small-{number}", owner=f"web-{number}")
    world.run(10)
    told = {pod.pod: (pod.act, pod.who, pod.to) for pod in world.outlook.pods}
    assert told == {"db-1": ("move", "shop/web-1", "small-3"), "db-2": ("move", "shop/web-2", "small-3")}
    assert world.evictions == []
    world.run(30)
    assert world.evictions == ["web-1", "web-2"]
    assert {world.pods[name].spec.node_name for name in ("web-1", "web-2")} == {"small-3"}


def test_capacity_a_resize_that_waits_is_told_also_in_a_look_that_does_nothing() -> None:
    """While all pods without a node have only come, nothing is done (C-008); the resize begins at the next look."""
    world = world_of("small-1", "small-2")
    waits(world, "db", "3", "1", owner="db")
    world.pod("web", "2", node="small-1")
    world.now += 40
    world.pod("new", "5", owner="new", metadata={"creationTimestamp": world.stamp()})
    world.tick()
    told = {pod.pod: (str(pod.act), pod.who, pod.to, pod.begins) for pod in world.outlook.pods}
    assert told == {"db": ("move", "shop/web", "small-2", "2026-02-02T02:40:50Z"), "new": ("wait", "", "", "")}
    assert world.evictions == []
    world.run(20)
    assert world.evictions == ["web"]


def test_capacity_a_neighbour_moves_where_it_has_a_place() -> None:
    world = world_of("small-1", "small-2")
    waits(world, "db", "3", "1", owner="db")
    world.pod("web", "2", node="small-1")
    world.run(40)
    assert world.evictions == ["web"]
    assert world.text("MovedForResize") == "Evicted to run on node small-2: so that shop/db can grow where it is"
    world.run(20)
    assert world.pods["web"].spec.node_name == "small-2"
    assert world.groups["small"].target == 2


def test_capacity_a_node_comes_where_the_neighbour_has_no_place_and_then_it_moves() -> None:
    """The place is there before anybody is evicted (C-086, C-088)."""
    world = world_of("small-1")
    waits(world, "db", "3", "1", owner="db")
    world.pod("web", "2", node="small-1")
    world.run(30)
    assert outlook(world, "db")[:2] == ("node", "shop/web")
    assert (world.groups["small"].target, world.evictions) == (2, [])
    assert ("db", "TriggeredScaleUp", "pod triggered scale-up: [{small 1->2 (max: 4)}]") in world.events
    world.run(40)
    assert (outlook(world, "db")[0], world.evictions) == ("move", [])
    world.run(40)
    assert world.evictions == ["web"]
    assert world.pods["web"].spec.node_name == "small-2"
    grants(world, "db")
    world.run(400)
    assert world.groups["small"].target == 2


def test_capacity_the_cheapest_neighbour_moves() -> None:
    """The lowest priority, then one of several replicas, then the smallest that is enough."""
    world = world_of("small-1", "small-2")
    waits(world, "db", "2", "0.5", owner="db", spec={"priority": 5})
    world.pod("tiny", "100m", node="small-1")
    world.pod("small", "800m", node="small-1")
    world.pod("other", "900m", node="small-1")
    world.pod("dear", "800m", node="small-1", owner="dear", spec={"priority": 9})
    world.run(60)
    assert world.evictions == ["small"]


@pytest.mark.parametrize(
    ("more", "because"),
    [
        ({"owner": ""}, "shop/web cannot move: shop/web is not replicated"),
        ({"spec": {"priority": 10}}, "shop/web cannot move: its priority is higher"),
    ],
)
def test_capacity_a_neighbour_that_may_not_move_stays(more: dict[str, Any], because: str) -> None:
    world = world_of("small-1", "small-2")
    waits(world, "db", "3", "1", owner="db")
    world.pod("web", "2", node="small-1", **more)
    world.run(100)
    assert world.evictions == []
    assert outlook(world, "db")[2].startswith(because)


def test_capacity_neighbours_that_shrink_come_first() -> None:
    """Where somebody makes room; for two minutes."""
    world = world_of("small-1", "small-2")
    world.look["makes_room"] = True
    waits(world, "db", "3", "1", owner="db", spec={"priority": 5})
    world.pod("web", "2", node="small-1", metadata={"annotations": {"podfit.dev/minimum": "cpu=1"}})
    world.run(100)
    assert (outlook(world, "db")[:2], world.evictions) == (("shrink", "shop/web"), [])
    world.run(60)
    assert world.evictions == ["web"]


def willing(world: World, **settings: Any) -> None:
    """A pod that waits, and one of lower priority that could give it all that it lacks."""
    waits(world, "db", "3", "1", owner="db", spec={"priority": 5})
    world.pod("web", "2", node="small-1", metadata={"annotations": {"podfit.dev/minimum": "cpu=500m"}})


def test_capacity_a_neighbour_that_may_be_shrunk_is() -> None:
    """Once, for what is missing and no more; nobody moves, and no node comes."""
    world = world_of("small-1", "small-2")
    willing(world)
    world.run(20)
    assert (outlook(world, "db")[:2], world.shrunk) == (("shrink", "shop/web"), [])
    world.run(20)
    assert world.shrunk == ["web"]
    assert world.pods["web"].spec.containers[0].resources.requests["cpu"].milli() == 1000
    assert world.text("MakingRoom") == "Resize lacks cpu 1: shop/web gives cpu 1"
    assert world.text("GaveRoom").startswith("Shrunk to make room for the resize of shop/db (priority 5): c cpu 2 to 1")
    world.run(100)
    assert outlook(world, "db") == ("wait", "", "room for it is on its way on its node")
    assert (world.shrunk, world.evictions, world.groups["small"].target) == (["web"], [], 2)


def test_capacity_what_shrinks_is_told_with_its_node_group() -> None:
    world = world_of("small-1")
    willing(world)
    world.run(30)
    [told] = world.outlook.pods
    assert (told.act, told.who, told.what, told.at) == ("shrink", "shop/web", "cpu 2 → 1", "small")


def test_capacity_a_neighbour_without_a_minimum_or_of_equal_priority_is_not_shrunk() -> None:
    for notes, priority in (({}, 5), ({"podfit.dev/minimum": "cpu=500m"}, 0), ({"podfit.dev/minimum": "cpu=x"}, 5)):
        world = world_of("small-1", "small-2")
        waits(world, "db", "3", "1", owner="db", spec={"priority": priority})
        world.pod("web", "2", node="small-1", metadata={"annotations": notes})
        world.run(40)
        assert (world.shrunk, world.evictions) == ([], ["web"])


def test_capacity_nobody_is_shrunk_where_that_is_switched_off() -> None:
    world = world_of("small-1", shrinks=False)
    willing(world)
    world.run(30)
    assert world.shrunk == []
    assert outlook(world, "db") == ("node", "shop/web", "shop/web could shrink for it, which is switched off")


def test_capacity_a_refused_shrink_is_told_and_the_next_act_follows() -> None:
    world = world_of("small-1", "small-2")
    willing(world)
    world.unshrinkable = {"web": "a LimitRange"}
    world.run(30)
    assert world.text("ShrinkRefused") == "shop/web cannot give room: a LimitRange"
    assert (world.shrunk, world.evictions) == ([], [])
    world.run(10)
    assert (world.shrunk, world.evictions) == ([], ["web"])


def test_capacity_one_neighbour_shrinks_for_one_resize_at_a_time() -> None:
    """What it gives to the first is not counted for the second."""
    world = world_of("small-1", "small-2")
    willing(world)
    waits(world, "other", "1", "500m", owner="other", spec={"priority": 4})
    world.run(30)
    assert world.shrunk == ["web"]
    assert outlook(world, "other")[0] == "wait"


def test_capacity_what_can_never_be_granted_moves_itself_where_its_successor_has_the_size() -> None:
    """C-087: a node that takes it comes first."""
    world = world_of("small-1")
    pod = waits(world, "db", "6", "1", owner="db", infeasible=True)
    world.look["templates"] = {("shop", "db"): pod.spec}
    world.run(40)
    assert {name: group.target for name, group in world.groups.items()} == {"small": 1, "large": 1}
    assert world.evictions == []
    world.run(90)
    assert world.evictions == ["db"]
    assert world.pods["db"].spec.node_name == "large-2"


def away(*, place_first: bool) -> float:
    """Seconds in which a workload of one replica does not run while it moves to a node that has yet to come."""
    world, seconds = world_of("small-1"), 0.0
    pod = waits(world, "db", "6", "1", owner="db", infeasible=True)
    world.look["templates"] = {("shop", "db"): pod.spec}
    if not place_first:
        world.evicted(pod)

    def see(step: float) -> None:
        nonlocal seconds
        seconds += 0 if world.pods["db"].spec.node_name else step

    world.run_closely(150, see)
    assert world.pods["db"].spec.node_name == "large-2"
    assert world.evictions == ["db"]
    return seconds + START_SECONDS


def test_capacity_a_workload_of_one_replica_is_away_for_a_start_and_not_for_a_node(
    figure: Callable[[str, object], None],
) -> None:
    evict_first, place_first = away(place_first=False), away(place_first=True)
    figure("evict first", f"{evict_first:.1f} s")
    figure("place first", f"{place_first:.1f} s")
    assert evict_first > 60
    assert place_first <= evict_first / 10


def test_capacity_a_successor_of_another_size_would_be_no_help() -> None:
    world = world_of("small-1")
    pod = waits(world, "db", "6", "1", owner="db", infeasible=True)
    small = world.pod("like", "1").spec
    del world.pods["like"]
    world.look["templates"] = {("shop", "db"): small}
    world.run(100)
    act, _, because = outlook(world, "db")
    assert (act, because) == ("nothing", "its successor would request cpu 1, not 6, in container c")
    assert world.groups["large"].target == 0
    world.look["recommended"] = recommended((pod,), db="6")
    world.run(200)
    assert world.evictions == ["db"]


def test_capacity_says_that_no_group_can_help() -> None:
    world = world_of("small-1")
    pod = waits(world, "db", "20", "1", owner="db", infeasible=True)
    world.look["templates"] = {("shop", "db"): pod.spec}
    world.run(100)
    text = "No node group has a node that would make place for its resize: 2 Insufficient cpu"
    assert world.text("NoNodeForResize") == text
    assert outlook(world, "db") == ("nothing", "shop/db", "no node group can help: 2 Insufficient cpu")


def test_capacity_a_refused_move_is_told_and_tried_again() -> None:
    world = world_of("small-1", "small-2")
    waits(world, "db", "3", "1", owner="db")
    world.pod("web", "2", node="small-1")
    world.refused = {"web": "a budget"}
    world.run(60)
    assert world.text("MoveRefused") == "shop/web is not evicted for its resize: a budget"
    assert world.pods["web"].spec.node_name == "small-1"
    world.refused = {}
    world.run(20)
    assert world.evictions == ["web"]


def test_capacity_moves_one_pod_of_a_workload_and_of_a_node_at_a_time() -> None:
    world = world_of("small-1", "small-2", "small-3")
    for number in (1, 2):
        waits(world, f"db-{number}", "3", "1", node=f"small-{number}", owner="db")
        world.pod(f"web-{number}", "2", node=f"small-{number}")
    world.run(30)
    assert world.evictions == ["web-1"]
    world.run(20)
    assert world.evictions == ["web-1", "web-2"]


def test_capacity_is_not_asked_about_resizes_where_that_is_switched_off() -> None:
    world = world_of("small-1", waiting_resizes=False)
    waits(world, "db", "3", "1", owner="db")
    world.pod("web", "2", node="small-1")
    world.run(300)
    assert (world.groups["small"].target, world.evictions) == (1, [])


def test_capacity_room_that_a_waiting_resize_asks_for_is_nobody_elses() -> None:
    """C-089: a node whose pods would take it is not removed."""
    world = world_of("small-1", "small-2")
    waits(world, "db", "3.5", "1", owner="db")
    world.pod("blocker", "1", node="small-1", owner="")
    world.pod("web", "1", node="small-2")
    world.run(2000, every=30)
    assert "small-2" in world.nodes
