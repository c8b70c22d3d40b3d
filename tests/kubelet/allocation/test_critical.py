"""A critical pod and what is ended for it, as allocation sees it (R-117)."""

from pathlib import Path

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.node.effects import Admitted, Preempting, Rejected
from podfit.decide.pod.system_priority import SYSTEM_CRITICAL
from support.allocating import Allocating
from support.placed import placed
from support.pods import container, needs
from support.pods import pod as made

pytestmark = pytest.mark.row("R-117")
TEXT = "Warning Preempting Preempted in order to admit critical pod"


def small(name: str, cpu: str, priority: int | None = None) -> Pod:
    return placed(made(container("c1", {"cpu": cpu}), name=name, priority=priority))


def vital(cpu: str = "1", name: str = "vital") -> Pod:
    return small(name, cpu, SYSTEM_CRITICAL)


async def test_a_resize_waits_until_its_victims_have_ended(tmp_path: Path) -> None:
    node, grows, one, other = Allocating(tmp_path), vital(), small("one", "1"), small("other", "1500m")
    await node.start(grows, one, other)
    await node.wants(grows, c1=needs({"cpu": "3500m"}))
    assert node.told_to_end == ["other", "one"]
    assert [event for event in node.events if "Preempt" in event] == [f"other {TEXT}", f"one {TEXT}"]
    assert node.metric('kubelet_preemptions{preemption_signal="cpu"}') == 2
    pending = node.condition(grows)
    assert pending is not None
    assert pending.reason == "Deferred"
    await node.ends(other)
    assert (node.cpu(grows), node.told_to_end) == (1000, ["other", "one"]), "no second time, and not yet"
    await node.ends(one)
    assert node.cpu(grows) == 3500
    assert node.condition(grows) is None
    assert node.metric('kubelet_pod_deferred_accepted_resizes_total{retry_trigger="pod_terminated"}') == 1


async def test_nobody_takes_the_room_in_between(tmp_path: Path) -> None:
    """A smaller resize behind it would fit into what the first victim leaves."""
    node, grows, behind = Allocating(tmp_path), vital(), small("behind", "100m", priority=5)
    one, other = small("one", "1400m"), small("other", "1500m")
    await node.start(grows, behind, one, other)
    await node.wants(behind, c1=needs({"cpu": "1"}))
    await node.wants(grows, c1=needs({"cpu": "3800m"}))
    assert sorted(node.told_to_end) == ["one", "other"]
    await node.ends(other)
    assert node.cpu(behind) == 100
    (answer,) = await node.add(small("late", "1"))
    assert isinstance(answer, Rejected)
    await node.ends(one)
    assert (node.cpu(grows), node.cpu(behind)) == (3800, 100)


async def test_a_claim_ends_with_the_request(tmp_path: Path) -> None:
    node, grows, one = Allocating(tmp_path), vital(), small("one", "2")
    await node.start(grows, one)
    await node.wants(grows, c1=needs({"cpu": "4"}))
    await node.wants(grows, c1=needs({"cpu": "1"}))
    await node.ends(one)
    (answer,) = await node.add(small("late", "3"))
    assert isinstance(answer, Admitted)


async def test_an_infeasible_or_ordinary_resize_ends_nobody(tmp_path: Path) -> None:
    node, ordinary, grows, one = Allocating(tmp_path), small("ordinary", "1", 1000), vital(), small("one", "1500m")
    await node.start(ordinary, grows, one)
    await node.wants(ordinary, c1=needs({"cpu": "3"}))
    await node.wants(grows, c1=needs({"cpu": "5"}))
    assert node.told_to_end == []


async def test_two_critical_resizes_do_not_count_on_the_same_victim(tmp_path: Path) -> None:
    node, first, second = Allocating(tmp_path), vital(name="first"), vital(name="second")
    one, other = small("one", "1"), small("other", "1")
    await node.start(first, second, one, other)
    await node.wants(first, c1=needs({"cpu": "2"}))
    await node.wants(second, c1=needs({"cpu": "2"}))
    assert sorted(node.told_to_end) == ["one", "other"]
    await node.ends(one)
    await node.ends(other)
    assert (node.cpu(first), node.cpu(second)) == (2000, 2000)


async def test_two_new_critical_pods_do_not_either(tmp_path: Path) -> None:
    node, one, other = Allocating(tmp_path), small("one", "2"), small("other", "2")
    await node.start(one, other)
    answers = await node.add(vital("2", name="first"), vital("2", name="second"))
    assert [type(answer) for answer in answers] == [Preempting, Preempting]
    assert sorted(node.told_to_end) == ["one", "other"]


async def test_a_new_critical_pod_is_asked_in_again(tmp_path: Path) -> None:
    node, one, other = Allocating(tmp_path), small("one", "2"), small("other", "2")
    await node.start(one, other)
    (answer,) = await node.add(vital("3"))
    assert isinstance(answer, Preempting)
    assert sorted(node.told_to_end) == ["one", "other"]
    assert "vital" not in node.allocated.uids
    node.synced.clear()
    await node.ends(one)
    assert "vital pod_terminated" in node.synced
    (answer,) = await node.add(vital("3"))
    assert isinstance(answer, Preempting), "one of two has ended"
    assert len(node.told_to_end) == 2
    await node.ends(other)
    (answer,) = await node.add(vital("3"))
    assert isinstance(answer, Admitted)
    node.synced.clear()
    await node.manager.remove(["one"])
    assert node.synced == [], "nobody waits any more"


async def test_a_new_critical_pod_that_cannot_be_helped_is_rejected(tmp_path: Path) -> None:
    node = Allocating(tmp_path)
    await node.start(vital("3", name="first"))
    (answer,) = await node.add(vital("2"))
    assert isinstance(answer, Rejected)
    assert answer.reason == "OutOfcpu"


async def test_one_that_gives_up_leaves_the_room_to_others(tmp_path: Path) -> None:
    node, one = Allocating(tmp_path), small("one", "2")
    await node.start(one)
    (answer,) = await node.add(vital("4"))
    assert isinstance(answer, Preempting)
    await node.manager.remove(["vital"])
    (answer,) = await node.add(small("late", "2"))
    assert isinstance(answer, Admitted)
