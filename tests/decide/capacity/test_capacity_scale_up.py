"""Scale-up by the machine alone: which group grows, for whom, how far, and what is said of the others."""

from typing import Any

import pytest

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.core.options import BadOption, resolve
from podfit.decide.capacity.expanders import Priorities
from podfit.decide.capacity.settings import AutoscalerSettings, Range, ScaleUpSettings
from support.capacity_world import Group, World, template


def settings(**scale_up: Any) -> AutoscalerSettings:
    return AutoscalerSettings(scale_up=ScaleUpSettings(**scale_up))


def small(**more: Any) -> Group:
    return Group(name="small", like=template("small", "2", "4Gi"), **more)


def large(**more: Any) -> Group:
    return Group(name="large", like=template("large", "16", "32Gi"), **more)


def sizes(world: World) -> dict[str, int]:
    return {name: group.target for name, group in world.groups.items()}


def test_capacity_grows_by_what_pods_ask_for_and_says_so() -> None:
    world = World(small(target=1))
    for number in range(5):
        world.pod(f"web-{number}")
    world.run(10)
    assert sizes(world) == {"small": 3}
    before, after, *pods = [(reason, text) for _, reason, text in world.events]
    assert before == ("ScaledUpGroup", "Scale-up: setting group small size to 3 instead of 1 (max: 10)")
    assert after == ("ScaledUpGroup", "Scale-up: group small size set to 3 instead of 1 (max: 10)")
    assert pods == [("TriggeredScaleUp", "pod triggered scale-up: [{small 1->3 (max: 10)}]")] * 3
    world.run(100)
    assert len(world.running()) == 5
    assert sizes(world) == {"small": 3}  # nodes on their way are counted on, nobody asks twice


def test_capacity_takes_the_group_that_wastes_least() -> None:
    world = World(small(), large())
    world.pod("web", "1500m")
    world.run(10)
    assert sizes(world) == {"small": 1, "large": 0}
    world.pod("big", "12")
    world.run(10)
    assert sizes(world) == {"small": 1, "large": 1}


def test_capacity_decides_between_equals_by_the_draw() -> None:
    for draw, chosen in ((0.0, "a"), (0.99, "b")):
        world = World(Group(name="a", like=template("a")), Group(name="b", like=template("b")))
        world.look["draw"] = draw
        world.pod("web")
        world.run(10)
        assert sizes(world)[chosen] == 1


def test_capacity_priority_expander_takes_what_it_is_told_and_says_what_it_leaves() -> None:
    world = World(small(), large(), settings=settings(expander=("priority", "least-waste")))
    world.look["priorities"] = Priorities({10: [".*large"]})
    world.pod("web")
    world.run(10)
    assert sizes(world) == {"small": 0, "large": 1}
    assert "node group small not found in priority expander" in world.text("PriorityConfigMapNotMatchedGroup")


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        (small(most=1, target=1), "1 max node group size reached"),
        (small(told={"problem": "sizes cannot be"}), "1 not ready for scale-up"),
        (small(told={"template": None}), "1 not ready for scale-up"),
        (small(), "1 Insufficient cpu"),
    ],
)
def test_capacity_says_why_no_group_helps(group: Group, reason: str) -> None:
    world = World(group)
    world.pod("big", "3")
    world.run(10)
    assert world.text("NotTriggerScaleUp") == f"pod didn't trigger scale-up: {reason}"
    [told] = world.outlook.pods
    assert (told.act, told.because) == ("nothing", f"no node group can help: {reason}")


def test_capacity_reasons_are_counted_and_sorted() -> None:
    world = World(small(), large(most=0), Group(name="tiny", like=template("tiny", "1", "1Gi")))
    world.pod("big", "3")
    world.run(10)
    text = "pod didn't trigger scale-up: 1 max node group size reached, 2 Insufficient cpu"
    assert world.text("NotTriggerScaleUp") == text


def test_capacity_waits_while_all_pods_are_young() -> None:
    """More of them are probably coming; nothing is removed meanwhile either (C-008)."""
    world = World(small())
    world.pod("web", metadata={"creationTimestamp": world.stamp(9)})
    world.run(10)
    assert (sizes(world), [pod.because for pod in world.outlook.pods]) == ({"small": 0}, ["it has only come"])
    world.run(10)
    assert sizes(world) == {"small": 1}


def test_capacity_waits_longer_where_the_pod_says_so_and_never_shorter() -> None:
    """C-009."""
    world = World(small(), settings=settings(pod_delay=300.0))
    delay = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
    world.pod("slow", metadata={"annotations": {delay: "10m"}})
    world.pod("quick", metadata={"annotations": {delay: "1s"}})
    world.run(230)
    assert sizes(world) == {"small": 0}
    world.run(20)
    assert world.reasons("quick") == ["TriggeredScaleUp"]
    assert world.reasons("slow") == []


def test_capacity_expendable_pods_count_for_nothing() -> None:
    """C-010: they cause no scale-up, and take no room that others could have."""
    world = World(small(target=1), large())
    world.pod("idle", "2", spec={"priority": -11})
    world.run(60)
    assert world.running() == ["idle"]
    world.pod("more", "2", spec={"priority": -11})
    world.run(60)
    assert sizes(world) == {"small": 1, "large": 0}


def test_capacity_at_the_largest_number_of_nodes_nothing_is_tried() -> None:
    """C-039, C-040."""
    world = World(small(target=1, most=9), settings=settings(most_nodes=3))
    for number in range(9):
        world.pod(f"web-{number}")
    world.run(10)
    assert sizes(world) == {"small": 3}
    assert world.text("MaxNodesTotalReached") == "Max total nodes in cluster reached: 3"
    world.run(120)
    assert "max total nodes in cluster reached" in world.text("NotTriggerScaleUp")
    assert sizes(world) == {"small": 3}


@pytest.mark.parametrize("limit", [{"cores": Range(0, 5)}, {"memory": Range(0, 11)}])
def test_capacity_is_capped_to_the_last_whole_node(limit: dict[str, Range]) -> None:
    """C-041: nodes have 2 CPUs and 4 GiB."""
    world = World(small(target=1), settings=settings(**limit))
    for number in range(9):
        world.pod(f"web-{number}")
    world.run(10)
    assert sizes(world) == {"small": 2}


def test_capacity_balances_over_groups_that_are_alike() -> None:
    """C-042: one node at a time to the smallest, within its largest size; a group of other nodes gets none."""
    groups = [
        Group(
            name=name,
            like=template(name, "2", "4Gi", **{"topology.kubernetes.io/zone": name}),
            target=target,
            most=most,
        )
        for name, target, most in (("a", 0, 9), ("b", 2, 9), ("c", 0, 1))
    ]
    world = World(*groups, large(most=0), settings=settings(balance_similar=True))
    for number in range(14):
        world.pod(f"web-{number}")
    world.run(10)
    assert sizes(world) == {"a": 3, "b": 3, "c": 1, "large": 0}
    text = world.text("TriggeredScaleUp")
    assert all(part in text for part in ("{a 0->3 (max: 9)}", "{b 2->3 (max: 9)}", "{c 0->1 (max: 1)}"))


def test_capacity_a_refused_increase_is_told_and_backed_off() -> None:
    """C-019, C-020: five minutes, then ten; meanwhile another group is taken."""
    world = World(small(refuses="quota of the cloud"))
    world.pod("web")
    world.run(20)
    assert world.text("FailedToScaleUpGroup") == "Scale-up failed for group small: quota of the cloud"
    assert world.text("NotTriggerScaleUp").endswith("1 in backoff after failed scale-up")
    assert world.outlook.groups[0].backoff_until == world.stamp(290)
    assert world.state.status is not None
    backoff = world.state.status.node_groups[0].scale_up
    assert backoff.status == "Backoff"
    assert backoff.backoff_info is not None
    assert (backoff.backoff_info.error_code, backoff.backoff_info.error_message) == (
        "cloudProviderError",
        "quota of the cloud",
    )
    world.run(300)
    assert world.reasons().count("FailedToScaleUpGroup") == 2
    assert world.outlook.groups[0].backoff_until == world.stamp(590)
    world.groups["small"].refuses = ""
    world.run(700)
    assert world.running() == ["web"]


def test_capacity_daemons_have_their_room_on_nodes_that_are_to_come() -> None:
    daemons = convert(
        {
            "metadata": {"name": "log", "namespace": "kube-system", "uid": "log"},
            "spec": {
                "selector": {"matchLabels": {"app": "log"}},
                "template": {
                    "metadata": {"labels": {"app": "log"}},
                    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
                },
            },
        },
        DaemonSet,
    )
    world = World(small())
    world.look["daemon_sets"] = (daemons,)
    for number in range(2):
        world.pod(f"web-{number}")
    world.run(10)
    assert sizes(world) == {"small": 2}  # without the daemon one node would do


def test_capacity_settings_refuse_expanders_that_decide_nothing() -> None:
    """C-038."""
    for words in ("random,least-waste", "least-waste,least-waste", "cheapest"):
        with pytest.raises(BadOption, match="--expander"):
            resolve(AutoscalerSettings, {"expander": words}, {})
    chosen = resolve(AutoscalerSettings, {"expander": "priority,least-waste,random"}, {}).scale_up.expander
    assert chosen == ("priority", "least-waste", "random")


def test_capacity_is_not_added_for_what_is_lent() -> None:
    """A new node lends nothing, whatever the one that it would be like does: otherwise pods on spare capacity would
    have nodes made one after the other."""
    size = {"cpu": "4", "memory": "8Gi", "pods": "110", "podfit.dev/spare-memory": "1000"}
    like = convert({"metadata": {"name": "small"}, "status": {"capacity": size, "allocatable": size}}, Node)
    world = World(Group(name="small", like=like, target=1))
    amounts = {"podfit.dev/spare-memory": "600"}
    borrower = {"containers": [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]}
    for name in ("a", "b"):
        world.pod(name, spec=borrower)
    world.run(120)
    assert (world.running(), sizes(world)) == (["a"], {"small": 1})
    assert world.text("NotTriggerScaleUp") == "pod didn't trigger scale-up: 1 Insufficient podfit.dev/spare-memory"
