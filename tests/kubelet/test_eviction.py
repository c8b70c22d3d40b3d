"""Pods that end because their node is short of memory."""

from kubelet.harness import Node, container
from kubelet.test_probes import told
from podfit.decide.node.pressure import Observation
from podfit.kubelet.runtime.types import ContainerStats

MI = 1 << 20
SHORT, ENOUGH = Observation(50 * MI, 8 << 30), Observation(4 << 30, 8 << 30)


def uses(node: Node, **megabytes: int) -> None:
    """What the container of each pod uses."""
    by_pod = {status.labels["io.kubernetes.pod.name"]: status for _, status, _ in node.runtime.containers.values()}
    node.runtime.stats = [
        ContainerStats(
            id=by_pod[name].id, name="c1", labels=by_pod[name].labels, timestamp=1, memory_working_set=n * MI
        )
        for name, n in megabytes.items()
    ]


def asks(memory: str) -> list[dict[str, object]]:
    return [container("c1", resources={"requests": {"memory": memory}})]


async def test_the_largest_beyond_its_request_goes_and_no_other(node: Node) -> None:
    node.add("modest", containers=asks("100Mi"))
    node.add("greedy", containers=asks("10Mi"))
    await node.runs("modest")
    await node.runs("greedy")
    uses(node, modest=90, greedy=80)
    node.signals["memory.available"] = SHORT
    await node.advance(10)
    await node.until(lambda: node.phase("greedy") == "Failed")
    node.signals["memory.available"] = ENOUGH
    status = node.api.status("greedy")
    assert status["reason"] == "Evicted"
    assert status["message"].startswith("The node was low on resource: memory. Threshold quantity: 100Mi, available: 5")
    target = node.condition("DisruptionTarget", "greedy") or {}
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert "stop c1 1s" in node.runtime.calls
    assert len(told(node, "Evicted")) == 1
    await node.advance(60)
    assert node.phase("modest") == "Running"


async def test_nobody_goes_while_there_is_enough(node: Node) -> None:
    node.add(containers=asks("10Mi"))
    await node.runs()
    uses(node, web=500)
    node.signals["memory.available"] = ENOUGH
    await node.advance(60)
    assert node.phase() == "Running"
