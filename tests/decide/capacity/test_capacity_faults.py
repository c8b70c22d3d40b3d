"""A provider that refuses, lies, loses machines or never makes them, and a cluster that is not well."""

from typing import Any

import pytest
from msgspec.structs import replace

from podfit.decide.capacity.node_groups import MOST_GROUPS, MOST_INSTANCES, Instance, InstanceState, NodeGroup, believed
from podfit.decide.capacity.settings import AutoscalerSettings
from support.capacity_world import Group, World, template


def small(**more: Any) -> Group:
    return Group(name="small", like=template("small", "2", "4Gi"), **more)


def test_capacity_a_node_that_never_comes_is_given_up_and_backed_off() -> None:
    """C-015: another group is taken when its time is over."""
    world = World(small(provision=None), Group(name="other", like=template("other", "3", "12Gi")))
    world.pod("web")
    world.run(890)
    assert world.groups["other"].target == 0
    assert [(pod.act, pod.group) for pod in world.outlook.pods] == [("node", "small")]
    world.run(200)
    assert world.text("ScaleUpTimedOut") == "Nodes added to group small failed to register within 15m0s"
    assert world.text("DeleteUnregistered") == "Removed instances fake:small-1 of group small"
    assert world.groups["small"].machines == {}
    assert world.running() == ["web"]


def test_capacity_a_target_without_machines_is_lowered() -> None:
    """The provider has said yes and made nothing."""
    world = World(small(provision=None))
    world.pod("web")
    world.run(10)
    world.groups["small"].machines.clear()
    world.run(910)
    assert world.groups["small"].target == 0
    assert world.reasons().count("ScaleUpTimedOut") == 1


def test_capacity_a_node_that_is_never_ready_has_not_come() -> None:
    world = World(small())
    world.pod("web")
    world.run(10)
    world.nodes["small-1"] = world.node("small-1", template("small", "2", "4Gi"), ready=False)
    world.run(1000)
    assert world.text("ScaleUpTimedOut") == "Nodes added to group small were not ready within 15m0s"
    assert world.outlook.groups[0].grows == "in backoff after failed scale-up"


def test_capacity_machines_that_cannot_be_made_are_told_once_and_deleted() -> None:
    """C-016."""
    world = World(small(broken="OUT_OF_RESOURCES"))
    for number in range(4):
        world.pod(f"web-{number}")
    world.run(20)
    text = "Failed adding 2 nodes to group small due to OUT_OF_RESOURCES; source errors: no more of them"
    assert world.text("ScaleUpFailed") == text
    assert (world.groups["small"].target, world.groups["small"].machines) == (0, {})
    world.run(100)
    assert world.reasons().count("ScaleUpFailed") == 1
    assert world.text("NotTriggerScaleUp").endswith("1 in backoff after failed scale-up")


def test_capacity_a_failed_machine_that_stays_is_no_new_failure() -> None:
    """Else the group would be in backoff for ever."""
    world = World(small())
    broken = Instance(id="fake:x", state=InstanceState.CREATING, error_code="E", error_message="no")
    world.groups["small"].told = {"target": 1, "instances": (broken,)}
    world.run(60)
    assert world.reasons().count("ScaleUpFailed") == 1
    assert world.outlook.groups[0].backoff_until == world.stamp(250)


def test_capacity_lost_machines_lower_the_target_at_last() -> None:
    """The provider lost two of three machines and goes on to say three; the target is never raised."""
    world = World(small(target=3))
    for number in range(3):
        world.pod(f"web-{number}", "1500m")
    world.run(20)
    for name in ("small-1", "small-2"):
        del world.groups["small"].machines[name], world.nodes[name]
    world.run(890)
    assert world.groups["small"].target == 3
    world.run(60)
    assert world.groups["small"].target < 3


def test_capacity_a_node_that_its_provider_forgot_is_not_removed() -> None:
    world = World(small(target=2))
    del world.groups["small"].machines["small-1"]
    world.groups["small"].target = 1
    world.run(2000)
    assert "small-1" in world.nodes
    assert world.state.status is not None
    assert world.state.status.cluster_wide is not None


def test_capacity_an_unhealthy_cluster_is_left_alone() -> None:
    """C-017, C-018: more than three, and more than 45 %."""
    world = World(small(least=8, target=8, most=20))
    for number in range(3):
        name = f"small-{number + 1}"
        world.nodes[name] = world.node(name, template("small", "2", "4Gi"), ready=False)
    world.run(910)
    for number in range(10):
        world.pod(f"web-{number}", "2")
    world.run(10)
    assert world.groups["small"].target > 8  # three are allowed
    world = World(small(least=8, target=8, most=20))
    for number in range(4):
        name = f"small-{number + 1}"
        world.nodes[name] = world.node(name, template("small", "2", "4Gi"), ready=False)
    world.run(910)
    for number in range(10):
        world.pod(f"web-{number}", "2")
    world.run(600)
    assert world.text("ClusterUnhealthy") == "Cluster is unhealthy"
    assert world.groups["small"].target == 8
    assert world.state.status is not None
    assert world.state.status.cluster_wide is not None
    assert world.state.status.cluster_wide.health.status == "Unhealthy"
    assert world.state.status.time == world.stamp()


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"target": 11}, "its target size 11 is above its largest, 10"),
        ({"target": -1}, "its target size is -1"),
        ({"min_size": -1}, "sizes from -1 to 10 cannot be"),
        ({"min_size": 5, "max_size": 4}, "sizes from 5 to 4 cannot be"),
        ({"max_size": 1 << 31}, "sizes from 0 to 2147483648 cannot be"),
        ({"instances": (Instance(id="a"), Instance(id="a"))}, "it names an instance twice"),
        (
            {"instances": tuple(Instance(id=str(number)) for number in range(MOST_INSTANCES + 1))},
            f"it has more than {MOST_INSTANCES} instances",
        ),
    ],
)
def test_capacity_a_group_that_cannot_be_is_left_alone(told: dict[str, Any], problem: str) -> None:
    """Neither grows it nor shrinks it, whatever waits, and it is said once."""
    world = World(small(target=2))
    world.groups["small"].told = told
    world.pod("web", "9")
    world.run(3000, every=60)
    assert world.groups["small"].target == 2
    assert [text for _, reason, text in world.events if reason == "NodeGroupRefused"] == [
        f"Node group small is left alone: {problem}"
    ]
    assert world.outlook.groups[0].problem == problem


def test_capacity_answers_are_bounded_and_foreign_instances_stay_with_their_group() -> None:
    group = NodeGroup(id="a", min_size=0, max_size=5, target=1, instances=(Instance(id="x"),))
    answers = believed([group, replace(group, id="b"), group, replace(group, id=" "), replace(group, id="n" * 254)])
    assert [(one.id, one.problem) for one in answers.groups] == [("a", ""), ("b", "instance x is of group a")]
    assert answers.groups[1].instances == ()
    assert len(answers.refused) == 3
    many = believed(replace(group, id=str(number), instances=()) for number in range(MOST_GROUPS + 5))
    assert (len(many.groups), many.refused) == (MOST_GROUPS, (f"there are more than {MOST_GROUPS} node groups",))
    error = Instance(id="x", error_code="E" * 5000, error_message="m" * 5000)
    [shortened] = believed([replace(group, instances=(error,))]).groups[0].instances
    assert (len(shortened.error_code), len(shortened.error_message)) == (1024, 1024)


def test_capacity_a_provider_that_tells_nothing_changes_nothing() -> None:
    world = World(small(target=2))
    world.run(300)
    unneeded = world.state.unneeded
    assert unneeded
    world.look["problem"] = "NodeGroups: no answer within 5 s"
    world.pod("web", "9")
    world.run(60)
    assert world.state.unneeded == unneeded
    assert world.text("NodeGroupProviderFailed") == "NodeGroups: no answer within 5 s"
    [told] = world.outlook.pods
    assert told.because == "NodeGroups: no answer within 5 s"
    assert world.groups["small"].target == 2


def test_capacity_remembers_nothing_of_what_is_gone() -> None:
    world = World(small(target=3), settings=AutoscalerSettings())
    for number in range(50):
        world.pod(f"web-{number}", "9")
    world.run(60)
    assert len(world.state.said) >= 50
    world.pods.clear()
    world.run(60)
    assert len(world.state.said) <= 2
    world.nodes.clear()
    world.groups.clear()
    world.run(30)
    assert (world.state.unneeded, world.state.unregistered, world.state.requests) == ({}, {}, {})
