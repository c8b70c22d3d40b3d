"""Endings and beginnings as a real Kubernetes 1.36 node was seen to report them (`node/pod-lifecycle.json`)."""

from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import Node, container
from podfit.kubelet.pods.runtime_facts import FILE_BYTES, read_message


def conditions(node: Node) -> dict[str, tuple[str, str]]:
    found = node.api.status("web").get("conditions", [])
    return {condition["type"]: (condition["status"], condition.get("reason", "")) for condition in found}


async def test_a_pod_that_is_active_for_too_long_fails(node: Node) -> None:
    node.add(activeDeadlineSeconds=60, terminationGracePeriodSeconds=1)
    await node.runs()
    await node.advance(59)
    assert node.phase() == "Running"
    await node.advance(1.5)
    await node.until(lambda: node.phase() == "Failed")
    text = "Pod was active on the node longer than the specified deadline"
    status = node.api.status("web")
    assert (status["reason"], status["message"]) == ("DeadlineExceeded", text)
    assert [event for event in node.api.events() if "c1" in event or "Pod was" in event] == [
        f"DeadlineExceeded {text}",
        "Killing Stopping container c1",
    ]


async def test_a_deadline_that_is_set_later_counts_from_the_start(node: Node) -> None:
    node.add()
    await node.runs()
    await node.advance(30)
    node.api.change("web", activeDeadlineSeconds=40)
    await node.rest()
    assert node.phase() == "Running"
    await node.advance(10.5)
    await node.until(lambda: node.phase() == "Failed")


@pytest.mark.parametrize("seconds", [3600.0, -3600.0, 86400.0, -86400.0, 10 * 365.25 * 86400, -10 * 365.25 * 86400])
async def test_a_deadline_does_not_move_when_the_time_of_day_is_set(node: Node, seconds: float) -> None:
    node.add(activeDeadlineSeconds=60, terminationGracePeriodSeconds=1)
    await node.runs()
    await node.advance(20)
    node.clock.jump(seconds)
    node.api.change("web", activeDeadlineSeconds=50)
    await node.advance(29)
    assert node.phase() == "Running"
    await node.advance(1.5)
    await node.until(lambda: node.phase() == "Failed")


async def test_what_others_say_of_a_pod_is_kept_and_can_make_it_ready(node: Node) -> None:
    node.add(readinessGates=[{"conditionType": "example.com/x"}])
    await node.runs()
    assert conditions(node)["Ready"] == ("False", "ReadinessGatesNotReady")
    pod = node.api.get("pods", "web") or {}
    foreign = {"type": "example.com/x", "status": "True"}
    status = {**pod["status"], "conditions": [foreign, *pod["status"]["conditions"]]}
    node.api.put("pods", {**pod, "status": status})
    await node.until(lambda: conditions(node)["Ready"] == ("True", ""))
    assert conditions(node)["example.com/x"] == ("True", "")
    pod = node.api.get("pods", "web") or {}
    rest = [condition for condition in pod["status"]["conditions"] if condition["type"] != "example.com/x"]
    node.api.put("pods", {**pod, "status": {**pod["status"], "conditions": rest}})
    await node.until(lambda: conditions(node)["Ready"] == ("False", "ReadinessGatesNotReady"))
    assert "example.com/x" not in conditions(node)


async def test_of_a_rejected_pod_no_more_is_told_than_why(node: Node) -> None:
    node.add(containers=[container("c1", resources={"requests": {"cpu": "50"}})])
    await node.until(lambda: node.phase() == "Failed")
    await node.rest()
    assert not {"conditions", "containerStatuses"} & node.api.status("web").keys()
    assert node.api.status("web")["reason"] == "OutOfcpu"


async def test_what_initialisation_never_came_to_goes_on_waiting(node: Node) -> None:
    init = [container("i1"), container("i2")]
    node.add(restartPolicy="Never", initContainers=init)
    await node.until(lambda: "running" in node.state(which="i1").get("state", {}))
    node.runtime.exit("i1", 2)
    await node.advance(0.5)
    await node.until(lambda: node.phase() == "Failed")
    for name in ("i2", "c1"):
        assert node.state(which=name)["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert conditions(node)["Initialized"] == ("False", "ContainersNotInitialized")
    assert conditions(node)["Ready"] == ("False", "PodFailed")


async def test_a_pod_deleted_before_it_began_ends_as_unready_as_it_was(node: Node) -> None:
    node.add(containers=[container("c1", image="missing:1")])
    await node.until(lambda: node.state().get("state", {}).get("waiting", {}).get("message"))
    node.api.delete("web", 1)
    await node.until(lambda: node.api.get("pods", "web") is None)
    last = [obj["status"] for kind, obj in node.api.history("pods") if kind == "DELETED"][-1]
    assert last["phase"] == "Failed"
    assert last["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    found = {condition["type"]: condition.get("reason") for condition in last["conditions"]}
    assert found["Ready"] == found["ContainersReady"] == "ContainersNotReady"


async def test_a_container_that_was_never_started_is_lost_at_the_end(node: Node) -> None:
    """The deletion came between create and start."""
    node.runtime.fail["start"] = "not now"
    node.add()
    await node.until(lambda: "start c1" in node.runtime.calls)
    key = next(iter(node.runtime.instances))
    node.runtime.undo_start(key)
    node.api.delete("web", 1)
    await node.until(lambda: node.api.get("pods", "web") is None)
    last = [obj["status"] for kind, obj in node.api.history("pods") if kind == "DELETED"][-1]
    assert last["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
OTHERS = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}}


@pytest.mark.parametrize(
    ("more", "code", "again"),
    [
        ({"restartPolicy": "OnFailure"}, 1, True),
        ({"restartPolicy": "OnFailure"}, 0, False),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE]}, 42, True),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE]}, 1, False),
        ({"restartPolicy": "Never", "restartPolicyRules": [OTHERS]}, 1, True),
        ({}, 1, False),
    ],
)
async def test_a_containers_own_policy_and_rules_decide(
    node: Node, more: dict[str, Any], code: int, again: bool
) -> None:
    node.add(restartPolicy="Never", containers=[container("c1", **more)])
    await node.runs()
    node.runtime.exit("c1", code)
    await node.advance(0.5)
    if again:
        await node.until(lambda: node.state()["restartCount"] == 1 and "running" in node.state()["state"])
        assert node.phase() == "Running"
    else:
        await node.until(lambda: node.phase() == ("Failed" if code else "Succeeded"))


def test_the_last_words_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "message"
    file.write_text("a" * 1000 + "b" * FILE_BYTES)
    assert read_message(file, "File", log=tmp_path / "none", failed=True) == "b" * FILE_BYTES
