"""Scale-down by the machine alone: which nodes go, when, what keeps them, and how they are emptied."""

from typing import Any

import pytest

from podfit.decide.capacity import deletion
from podfit.decide.capacity.look import RemoveNode
from podfit.decide.capacity.settings import AutoscalerSettings, DrainSettings, Range, ScaleDownSettings, ScaleUpSettings
from support.capacity_world import Group, World, recommended, template


def group(name: str = "small", **more: Any) -> Group:
    return Group(name=name, like=template(name), **more)


def removed(world: World) -> list[str]:
    return [name for _, what, name in world.history if what == "removed"]


def kept(world: World) -> dict[str, str]:
    return {node.name: node.reason for node in world.outlook.nodes}


def test_capacity_a_node_that_nobody_needs_goes_after_its_time() -> None:
    """C-053: unneeded for exactly ten minutes is not yet long enough."""
    world = World(group(target=1, least=0))
    world.run(610)
    assert removed(world) == []
    assert kept(world) == {"small-1": "NotUnneededLongEnough"}
    world.run(30)
    assert removed(world) == ["small-1"]
    assert world.text("ScaleDownEmpty") == "Scale-down: empty node small-1 removed"
    assert world.reasons("small-1") == ["ScaleDown", "ScaleDown"]


def test_capacity_a_node_that_is_needed_once_starts_again_from_zero() -> None:
    """C-054."""
    world = World(group(target=1))
    world.run(500)
    world.pod("web", "3")
    world.run(20)
    assert kept(world) == {"small-1": "NotUnderutilized"}
    del world.pods["web"]
    world.run(600)
    assert removed(world) == []
    world.run(40)
    assert removed(world) == ["small-1"]


def test_capacity_keeps_the_least_size_of_groups_and_of_the_cluster() -> None:
    """C-055; the CPUs of the cluster stay above their least."""
    world = World(group(target=3, least=2))
    world.run(2000)
    assert world.groups["small"].target == 2
    assert set(kept(world).values()) == {"NodeGroupMinSizeReached"}
    least = AutoscalerSettings(scale_up=ScaleUpSettings(cores=Range(8, 1000)))
    world = World(group(target=3), settings=least)
    world.run(2000)
    assert world.groups["small"].target == 2
    assert "MinimalResourceLimitExceeded" in kept(world).values()


def test_capacity_half_used_is_removable_and_more_is_not() -> None:
    """C-045; its pods run elsewhere then, and are evicted one after another."""
    world = World(group(target=2))
    world.pod("a", "1500m", node="small-1")
    world.pod("b", "2", node="small-2")
    world.run(700)
    assert removed(world) == ["small-1"]
    assert world.pods["a"].spec.node_name == "small-2"
    assert world.text("ScaleDown") == "Scale-down: node small-1 removed with drain"
    assert (
        "",
        "ScaleDown",
        "Scale-down: removing node small-1, utilization: 0.375, pods to reschedule: a",
    ) in world.events
    assert ("a", "ScaleDown", "deleting pod for node scale down") in world.events
    world = World(group(target=2))
    world.pod("a", "2001m", node="small-1")
    world.pod("b", "3", node="small-2")
    world.run(2000)
    assert removed(world) == []
    assert set(kept(world).values()) == {"NotUnderutilized"}


def test_capacity_two_candidates_do_not_count_on_the_same_room() -> None:
    """C-057: three nodes with a small pod each become two, not none."""
    world = World(group(target=3))
    for number in range(3):
        world.pod(f"web-{number}", "1500m", node=f"small-{number + 1}")
    world.run(3000)
    assert len(removed(world)) == 1
    assert len(world.running()) == 3


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"owner": ""}, "BlockedByPod"),
        ({"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}}, "BlockedByPod"),
        (
            {"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion"}}},
            "BlockedByOnCompletionPod",
        ),
        ({"spec": {"nodeSelector": {"kubernetes.io/hostname": "small-1"}}}, "NoPlaceToMovePods"),
    ],
)
def test_capacity_a_pod_that_may_not_move_keeps_its_node(more: dict[str, Any], reason: str) -> None:
    world = World(group(target=2, least=1))
    world.pod("web", node="small-1", **more)
    world.pod("other", "3", node="small-2")
    world.run(3000, every=30)
    assert removed(world) == []
    assert kept(world)["small-1"] == reason


def test_capacity_an_annotation_keeps_a_node() -> None:
    """C-046: it has to be exactly "true"."""
    for value, gone in (("true", []), ("True", ["small-1"])):
        like = template("small")
        like.metadata.annotations.update({"cluster-autoscaler.kubernetes.io/scale-down-disabled": value})
        world = World(Group(name="small", like=like, target=1))
        world.run(700)
        assert removed(world) == gone


def test_capacity_removes_empty_nodes_in_bulk_and_others_one_at_a_time() -> None:
    """C-060."""
    world = World(group(target=14, most=20))
    for number in (1, 2, 3):
        world.pod(f"web-{number}", "500m", node=f"small-{number}")
    world.refused = {f"web-{number}": "a budget" for number in (1, 2, 3)}
    world.run(620)
    assert len(world.state.removing) == 10
    assert sum(removing.drains for removing in world.state.removing.values()) == 0
    world.run(40)
    assert sum(removing.drains for removing in world.state.removing.values()) == 1


def test_capacity_judges_so_many_nodes_with_pods_in_one_look() -> None:
    world = World(group(target=45, most=60))
    for number in range(1, 46):
        world.pod(f"web-{number}", "500m", node=f"small-{number}")
    world.run(10)
    assert len(kept(world)) == 30


def test_capacity_an_eviction_in_vain_takes_the_taint_off_and_waits() -> None:
    """C-061, C-063: every ten seconds for two minutes; no other node goes for three minutes then."""
    world = World(group(target=2))
    world.pod("a", node="small-1")
    world.pod("b", "2", node="small-2")
    world.refused = {"a": "Cannot evict pod as it would violate the pod's disruption budget."}
    world.run(640)
    assert "ToBeDeletedByClusterAutoscaler" in [taint.key for taint in world.nodes["small-1"].spec.taints]
    world.run(140)
    assert "ToBeDeletedByClusterAutoscaler" not in [taint.key for taint in world.nodes["small-1"].spec.taints]
    assert world.reasons("a") == ["ScaleDownFailed"]
    text = "failed to drain and delete node: failed to evict pod shop/a: Cannot evict pod as it would violate"
    assert world.text("ScaleDownFailed").startswith(text)
    tries = world.reasons("small-1").count("ScaleDownFailed")
    world.run(150)
    assert world.reasons("small-1").count("ScaleDownFailed") == tries
    world.refused = {}
    world.run(600)
    assert removed(world) == ["small-1"]


def test_capacity_nothing_goes_for_a_while_after_nodes_came() -> None:
    """C-059: unneeded times go on."""
    world = World(group(target=2))
    world.run(300)
    world.pod("big", "4")
    world.pod("big-2", "4")
    world.pod("big-3", "4")
    world.run(120)
    assert world.groups["small"].target == 3
    world.pods.clear()
    world.run(500)
    assert removed(world) == []
    world.run(300)
    assert len(removed(world)) == 3


def test_capacity_no_node_goes_that_is_missed_a_minute_later() -> None:
    """What a VPA is about to give counts, on the node and where its pods would go."""
    for target, gone in (("1500m", []), ("500m", ["small-1"])):
        world = World(group(target=2))
        one, other = world.pod("a", "500m", node="small-1"), world.pod("b", "500m", node="small-2")
        world.look["recommended"] = recommended((one, other), a="1", b="3500m" if gone == [] else target)
        world.run(1000)
        assert removed(world) == gone


def test_capacity_a_group_whose_node_was_missed_keeps_its_nodes_for_an_hour() -> None:
    world = World(group(target=2))
    world.pod("a", "3", node="small-1")
    world.run(700)
    assert removed(world) == ["small-2"]
    world.pod("b", "3")
    world.run(200)
    assert world.running() == ["a", "b"]
    del world.pods["b"]
    world.run(3300)
    assert removed(world) == ["small-2"]
    assert "NotUnneededOtherReason" in kept(world).values()
    world.run(600)
    assert len(removed(world)) == 2


def test_capacity_marks_nodes_that_may_go_soon_and_unmarks_them() -> None:
    world = World(group(target=12, most=20))
    world.run(10)
    assert len(world.marked) == 10  # of one look
    world.run(10)
    assert len(world.marked) == 12
    world.pod("big", "3", node="small-1")
    world.run(10)
    assert "small-1" not in world.marked


def test_capacity_does_nothing_where_it_is_switched_off() -> None:
    off = AutoscalerSettings(scale_down=ScaleDownSettings(enabled=False))
    world = World(group(target=2), settings=off)
    world.run(3000, every=60)
    assert removed(world) == []


def test_capacity_room_that_waiting_pods_will_take_is_needed() -> None:
    """A node is not unneeded while a pod is about to run there."""
    world = World(group(target=1))
    world.run(590)
    world.pod("web", "3", metadata={"creationTimestamp": world.stamp(-30)})
    world.run(100)
    assert removed(world) == []
    assert world.running() == ["web"]


def test_capacity_unready_nodes_go_later_and_only_where_that_is_wanted() -> None:
    for wanted, gone in ((True, ["small-1"]), (False, [])):
        settings = AutoscalerSettings(scale_down=ScaleDownSettings(unready_too=wanted), startup_time=60.0)
        world = World(group(target=2), settings=settings)
        world.nodes["small-1"] = world.node("small-1", template("small"), ready=False)
        world.pod("web", "3", node="small-2")
        world.run(1200)
        assert removed(world) == []
        world.run(200)
        assert removed(world) == gone


def test_capacity_the_grace_of_a_drain_is_bounded() -> None:
    """C-062, C-064: it waits for the pod's grace and 30 seconds more."""
    world = World(group(target=1))
    pod = world.pod("web", spec={"terminationGracePeriodSeconds": 3600}, node="small-1")
    job = RemoveNode(node=world.nodes["small-1"], group="small", move=(pod,))
    actions = deletion.remove(job, DrainSettings())
    done, passed, action, ended = list[object](), 0.0, next(actions), ""
    while not ended:
        done.append(action)
        passed += action.seconds if isinstance(action, deletion.Wait) else 0.0
        try:
            action = actions.send("web" if isinstance(action, deletion.LookForPods) else "")
        except StopIteration as end:
            ended = end.value
    assert ended == "pods remaining after timeout: web"
    [eviction] = [action for action in done if isinstance(action, deletion.EvictPod)]
    assert eviction.grace == 600.0
    assert 630 <= passed <= 640
    assert isinstance(done[-1], deletion.Taint)
    assert not done[-1].on
