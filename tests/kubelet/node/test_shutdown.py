"""A node that is shut down with time for its pods."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubelet.harness import Node
from kubelet.test_probes import told
from podfit.decide.node.shutdown import MESSAGE

CRITICAL = 2_000_000_000


@pytest.fixture
async def patient(tmp_path: Path) -> AsyncIterator[Node]:
    """30 s, of which critical pods have 10."""
    node = Node(tmp_path / "node")
    given = replace(node.config.options, shutdown_grace_period=30.0, shutdown_grace_period_critical_pods=10.0)
    node.config = replace(node.config, options=given)
    node.restarted()
    await node.start()
    yield node
    await node.kubelet.stop(stop_pods=False)


async def test_pods_end_in_the_order_of_their_priorities(patient: Node) -> None:
    node = patient
    for name, priority in (("plain", 0), ("vital", CRITICAL)):
        node.add(name, priority=priority, terminationGracePeriodSeconds=60)
        await node.runs(name)
    down = asyncio.create_task(node.kubelet.shut_down())
    await node.until(lambda: node.phase("plain") == "Failed")
    assert node.phase("vital") == "Running"
    await node.advance(0.1)
    await node.until(lambda: node.phase("vital") == "Failed")
    await node.advance(0.1)
    await down
    for name in ("plain", "vital"):
        status = node.api.status(name)
        assert (status["reason"], status["message"]) == ("Terminated", MESSAGE)
        target = node.condition("DisruptionTarget", name) or {}
        assert (target["reason"], target["message"]) == ("TerminationByKubelet", MESSAGE)
    stops = [call for call in node.runtime.calls if call.startswith("stop ")]
    assert stops == ["stop c1 20s", "stop c1 10s"]
    await node.rest()
    assert told(node, "Shutdown") == ["Shutdown Shutdown manager detected shutdown event"]
    assert told(node, "NodeNotReady") == ["NodeNotReady Node n1 status is now: NodeNotReady"]


async def test_a_pod_that_does_not_end_holds_the_next_group_up_for_its_time_only(patient: Node) -> None:
    node = patient
    node.runtime.hangs_on_stop = True
    for name, priority in (("plain", 0), ("vital", CRITICAL)):
        node.add(name, priority=priority)
        await node.runs(name)
    down = asyncio.create_task(node.kubelet.shut_down())
    await node.rest()
    await node.advance(21.9)
    assert len([call for call in node.runtime.calls if call.startswith("stop ")]) == 1
    await node.advance(0.2)
    await node.until(lambda: len([call for call in node.runtime.calls if call.startswith("stop ")]) == 2)
    await node.advance(12.1)
    await down


async def test_without_a_time_nobody_is_ended(node: Node) -> None:
    node.add()
    await node.runs()
    await node.kubelet.shut_down()
    await node.advance(60)
    assert node.phase() == "Running"
