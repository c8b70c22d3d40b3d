"""A critical pod makes its way, through the whole node on a fake runtime (R-117)."""

import pytest

from kubelet.harness import Node, container
from kubelet.static.test_static_pods import manifest, mirror, put
from kubelet.test_resize import done
from podfit.decide.pod.system_priority import SYSTEM_CRITICAL

pytestmark = pytest.mark.row("R-117")
TEXT = "Preempted in order to admit critical pod"


def asks(cpu: str, name: str = "c1") -> dict[str, object]:
    return container(name, resources={"requests": {"cpu": cpu}})


async def crowded(node: Node) -> None:
    """One critical pod and two that are not, one of which ends only when its grace period is over."""
    node.add("vital", priority=SYSTEM_CRITICAL, containers=[asks("1")])
    node.add("one", containers=[asks("1500m", "o1")])
    node.add("slow", containers=[asks("1", "s1")], terminationGracePeriodSeconds=7)
    for name in ("vital", "one", "slow"):
        await node.runs(name)
    node.runtime.stubborn.add("s1")


def failed(node: Node, name: str) -> None:
    status = node.api.status(name)
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Preempting", TEXT)
    target = node.condition("DisruptionTarget", name) or {}
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert target["message"] == "Pod was preempted by Kubelet to accommodate a critical pod."


async def test_its_resize_is_granted_when_the_victim_is_gone_and_not_before(node: Node) -> None:
    await crowded(node)
    node.api.change("vital", containers=[asks("2")])
    await node.until(lambda: f"Preempting {TEXT}" in node.api.events())
    await node.advance(6)
    assert node.api.status("slow")["phase"] == "Running"
    assert node.condition("DisruptionTarget", "slow") is not None
    assert (node.condition("PodResizePending", "vital") or {})["reason"] == "Deferred"
    assert node.state("vital")["allocatedResources"]["cpu"] == "1"
    await node.advance(1)
    await node.until(lambda: done(node, "vital"))
    assert node.state("vital")["allocatedResources"]["cpu"] == "2"
    assert node.state("vital")["restartCount"] == 0
    failed(node, "slow")
    assert node.api.status("one")["phase"] == "Running"
    assert 'kubelet_preemptions{preemption_signal="cpu"} 1.0' in (await node.ask("/metrics"))[1]
    assert "stop s1 7s" in node.runtime.calls


async def test_a_new_one_is_admitted_when_the_victims_are_gone(node: Node) -> None:
    await crowded(node)
    node.add("newcomer", priority=SYSTEM_CRITICAL + 1000, containers=[asks("2500m")])
    await node.rest()
    assert node.api.status("newcomer")["phase"] == "Pending"
    assert "start n1" not in node.runtime.calls
    await node.advance(7)
    await node.runs("newcomer")
    failed(node, "slow")
    assert [node.api.status(name)["phase"] for name in ("vital", "one")].count("Failed") == 1


async def test_a_new_one_that_is_deleted_while_it_waits(node: Node) -> None:
    await crowded(node)
    node.add("newcomer", priority=SYSTEM_CRITICAL, containers=[asks("1500m")])
    await node.until(lambda: f"Preempting {TEXT}" in node.api.events())
    node.api.delete("newcomer", 0)
    await node.until(lambda: node.api.get("pods", "newcomer") is None)
    await node.advance(7)
    failed(node, "slow")
    node.add("late", containers=[asks("1500m", "l1")])  # what the claim would have kept from it
    await node.runs("late")


async def test_after_a_crash_it_begins_again(node: Node) -> None:
    await crowded(node)
    node.api.change("vital", containers=[asks("2")])
    await node.until(lambda: f"Preempting {TEXT}" in node.api.events())
    await node.crash()
    await node.start()
    await node.rest()
    assert node.state("vital")["allocatedResources"]["cpu"] == "1"
    await node.advance(10)
    await node.until(lambda: done(node, "vital") and node.state("vital")["allocatedResources"]["cpu"] == "2")
    failed(node, "slow")


async def test_a_static_pod_makes_its_way_and_can_be_taken_back_meanwhile(node: Node) -> None:
    await crowded(node)
    path = put(node, manifest(asks("1500m", "s2")))
    await node.advance(1)
    await node.until(lambda: f"Preempting {TEXT}" in node.api.events())
    assert node.phase("web-n1") != "Running"
    await node.advance(7)
    await node.until(lambda: node.phase("web-n1") == "Running")
    failed(node, "slow")
    path.unlink()
    await node.advance(7)
    await node.until(lambda: not mirror(node))
    put(node, manifest(asks("3", "s3")))
    await node.advance(1)
    await node.until(lambda: node.condition("DisruptionTarget", "one") is not None)
    path.unlink()
    await node.advance(1)
    node.add("late", containers=[asks("3", "l1")])
    await node.runs("late")
