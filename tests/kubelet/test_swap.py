"""Swap (R-116): who may use it, how much, and what that forbids."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import Node, container
from kubelet.node_api import Document
from podfit.decide.cgroup.container_resources import Machine

GI = 1 << 30
SWAPPING = Machine(memory=4 * GI, cgroup="v2", swap=2 * GI, swap_controller=True)
STILL = Machine(memory=4 * GI, cgroup="v2", swap_controller=True)
SWAP = "In-place resize of containers with swap is not supported."


def asks(memory: str, limit: str = "1Gi", **more: Any) -> Document:
    return container("c1", resources={"requests": {"memory": memory}, "limits": {"memory": limit}}, **more)


async def started(root: Path, machine: Machine) -> Node:
    node = Node(root / "node", machine=machine)
    await node.start()
    return node


@pytest.fixture
async def swapping(tmp_path: Path) -> AsyncIterator[Node]:
    node = await started(tmp_path, SWAPPING)
    yield node
    await node.kubelet.stop(stop_pods=False)


def swap_max(node: Node) -> str:
    resources = node.runtime.running("c1").resources
    assert resources is not None
    return resources.unified["memory.swap.max"]


def done(node: Node) -> bool:
    pod = node.api.get("pods", "web") or {}
    seen = pod["status"].get("observedGeneration", 0) >= pod["metadata"]["generation"]
    return seen and not [c for c in pod["status"]["conditions"] if c["type"].startswith("PodResize")]


@pytest.mark.row("R-116")
async def test_a_container_that_may_swap_cannot_change_its_memory_request(swapping: Node) -> None:
    swapping.add(containers=[asks("512Mi")])
    await swapping.runs()
    assert swap_max(swapping) == str(GI // 4), "request / node memory * node swap"
    swapping.api.change("web", containers=[asks("600Mi")])
    await swapping.until(lambda: (swapping.condition("PodResizePending") or {}).get("reason") == "Infeasible")
    assert (swapping.condition("PodResizePending") or {})["message"] == SWAP
    swapping.api.change("web", containers=[asks("512Mi", "2Gi")])
    await swapping.until(lambda: done(swapping) and swapping.state()["resources"]["limits"]["memory"] == "2Gi")
    assert swapping.state()["restartCount"] == 0


@pytest.mark.row("R-116")
async def test_a_restart_brings_another_share_of_the_swap(swapping: Node) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    swapping.add(containers=[asks("512Mi", resizePolicy=policy)])
    await swapping.runs()
    swapping.api.change("web", containers=[asks("1Gi", "2Gi", resizePolicy=policy)])
    await swapping.until(lambda: done(swapping) and swapping.state()["restartCount"] == 1)
    assert swap_max(swapping) == str(GI // 2)


@pytest.mark.row("R-116")
async def test_without_swap_memory_changes_and_none_is_given(tmp_path: Path) -> None:
    node = await started(tmp_path, STILL)
    node.add(containers=[asks("512Mi")])
    await node.runs()
    assert swap_max(node) == "0"
    node.api.change("web", containers=[asks("600Mi")])
    await node.until(lambda: done(node) and node.state()["allocatedResources"]["memory"] == "600Mi")
    await node.kubelet.stop(stop_pods=False)
