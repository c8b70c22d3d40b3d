"""Who holds a node, what waits on it, and whom the scheduler keeps away for what only waits."""

from typing import Any

import pytest

from answers.conversation import NODE as PATH
from answers.conversation import Conversation, pod
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import NODE, Target
from podfit.answers.why.node import NodeWhy, why_node
from podfit.core.errors import ApiError
from podfit.core.times import parse_time

NOW = parse_time("2026-01-01T00:14:00Z")
PENDING = {
    "type": "PodResizePending",
    "status": "True",
    "message": "told by the node",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "observedGeneration": 1,
}
DEFERRED, INFEASIBLE = ({**PENDING, "reason": reason} for reason in ("Deferred", "Infeasible"))


def unscheduled(name: str, cpu: str, *, node: str = "", **spec: Any) -> dict[str, Any]:
    found = pod(name, cpu=cpu, phase="Pending", nominatedNodeName=node, containerStatuses=[], spec=spec)
    del found["spec"]["nodeName"]
    return found


async def asked(*pods: dict[str, Any], **more: Any) -> NodeWhy:
    conversation = Conversation(36, *pods, **more)
    found = await Reader(conversation.client, "shop").read(Target(NODE, "n1"))
    assert {method for method, _ in conversation.asked} == {"GET"}
    return why_node("n1", found, NOW)


async def test_who_holds_it_by_each_resource() -> None:
    found = await asked(pod("web", memory="1Gi"), pod("big", cpu="2", spec={"priority": 7}))
    assert [(holder.pod, holder.amount, holder.priority) for holder in found.holders] == [
        ("shop/big", "2 cpu", 7),
        ("shop/web", "500m cpu", 0),
    ]
    assert [holder.pod for holder in found.memory_holders] == ["shop/web", "shop/big"]
    assert [(member.pod, member.why) for member in found.members] == [("shop/web", ""), ("shop/big", "")]
    assert (found.waiting, found.nominated, found.shut_out, found.notes) == ((), (), (), ())


async def test_every_resize_that_is_not_done_those_in_the_queue_first() -> None:
    found = await asked(
        pod("never", cpu="3", allocated="500m", conditions=[INFEASIBLE]),
        pod("busy", conditions=[{"type": "PodResizeInProgress", "status": "True"}]),
        pod("web", cpu="3", allocated="500m", conditions=[DEFERRED]),
        pod("big", cpu="2"),
    )
    assert [(why.pod, why.state, why.position) for why in found.waiting] == [
        ("web", "deferred", 1),
        ("never", "infeasible", 0),
        ("busy", "in progress", 0),
    ]
    whys = {member.pod: member.why for member in found.members}
    assert whys["shop/web"] == "its waiting resize counts already"
    assert (whys["shop/big"], whys["shop/busy"]) == ("", "")


async def test_whom_the_scheduler_keeps_away() -> None:
    waiting = pod("web", cpu="3", allocated="500m", conditions=[DEFERRED])
    elsewhere = unscheduled("elsewhere", "500m", nodeSelector={"zone": "b"})
    found = await asked(
        waiting,
        pod("big", cpu="2"),
        unscheduled("small", "1"),
        unscheduled("large", "3"),
        elsewhere,
        unscheduled("chosen", "100m", node="n1"),
    )
    assert found.shut_out == ("shop/small", "shop/chosen")
    assert found.nominated == ("shop/chosen",)
    assert any("2500m cpu fuller" in note for note in found.notes)


@pytest.mark.parametrize("path", ["/api/v1/pods", PATH])
async def test_what_may_not_be_read_is_not_said_to_be_empty_or_missing(path: str) -> None:
    with pytest.raises(ApiError, match=f"cannot list {path}$"):
        await asked(pod("web"), forbidden=(path,))


@pytest.mark.parametrize("minor", [27, 30, 33, 36])
async def test_servers_of_every_age(minor: int) -> None:
    conversation = Conversation(minor, pod("web", cpu="3", allocated="500m", resize="Deferred", conditions=[DEFERRED]))
    found = await Reader(conversation.client, "shop").read(Target(NODE, "n1"))
    assert [why.state for why in why_node("n1", found, NOW).waiting] == ["deferred"]


@pytest.mark.parametrize(("minor", "counted"), [(35, "1"), (36, "2")])
async def test_the_scheduler_counts_by_the_gates_of_its_release(minor: int, counted: str) -> None:
    """1.35 leaves out what a node reports of the pod as a whole: the gate for resizing that is off."""
    small, large = ({"requests": {"cpu": cpu, "memory": "1Gi"}} for cpu in ("1", "2"))
    told = pod("web", cpu="500m", spec={"resources": small}, resources=large, allocatedResources=large["requests"])
    conversation = Conversation(minor, told)
    why = why_node("n1", await Reader(conversation.client, "shop").read(Target(NODE, "n1")), NOW)
    assert (why.counted["cpu"], why.members[0].counted["cpu"]) == (counted, counted)
