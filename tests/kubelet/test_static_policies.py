"""Nodes whose managers are static: CPUs and memory of one's own, from admission to the runtime."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubelet.harness import MACHINE, Node, container
from kubelet.node_api import Document
from podfit.core.features import FeatureGates
from podfit.decide.managers.cpu import flat, parse
from podfit.decide.managers.memory import Bank
from podfit.kubelet.managers.config import ManagersConfig

STATIC = ManagersConfig(
    cpu_policy="static",
    topology=flat(4),
    reserved_cpus=parse("0"),
    memory_policy="Static",
    banks={0: Bank(4 << 30, 1 << 30)},
)
GATES = FeatureGates({"InPlacePodVerticalScalingExclusiveCPUs": True, "InPlacePodVerticalScalingExclusiveMemory": True})


def sized(cpu: str, memory: str = "100Mi", name: str = "c1", **more: Any) -> Document:
    amounts = {"cpu": cpu, "memory": memory}
    return container(name, resources={"requests": amounts, "limits": amounts}, **more)


@pytest.fixture
async def static(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(tmp_path / "node", managers=STATIC, machine=replace(MACHINE, static_cpus=True))
    await node.start()
    yield node
    await node.kubelet.stop(stop_pods=False)


@pytest.fixture
async def lifted(tmp_path: Path) -> AsyncIterator[Node]:
    """With both gates."""
    node = Node(tmp_path / "node", managers=STATIC, machine=replace(MACHINE, static_cpus=True, gates=GATES))
    await node.start()
    yield node
    await node.kubelet.stop(stop_pods=False)


async def guaranteed(node: Node, cpu: str, name: str = "web", which: str = "c1") -> None:
    node.add(name, containers=[sized(cpu, name=which)], qos="Guaranteed")
    await node.runs(name)


def on(node: Node, which: str) -> str:
    resources = node.runtime.running(which).resources
    assert resources is not None
    return resources.cpuset_cpus


def pending(node: Node, name: str = "web") -> tuple[str, str]:
    condition = node.condition("PodResizePending", name) or {}
    return condition.get("reason", ""), condition.get("message", "")


def done(node: Node, name: str = "web") -> bool:
    pod = node.api.get("pods", name) or {}
    seen = pod["status"].get("observedGeneration", 0) >= pod["metadata"]["generation"]
    return seen and not [c for c in pod["status"]["conditions"] if c["type"].startswith("PodResize")]


async def test_whole_cpus_are_exclusive_and_the_others_move_away_first(static: Node) -> None:
    static.add("small", containers=[container("s1")])
    await static.runs("small")
    assert on(static, "s1") == "0-3"
    await guaranteed(static, "2")
    assert (on(static, "c1"), on(static, "s1")) == ("1-2", "0,3")
    calls = static.runtime.calls
    assert calls.index("update s1") < calls.index("create c1"), "the CPUs are empty before their owner comes"
    resources = static.runtime.running("c1").resources
    assert resources is not None
    assert (resources.cpu_quota, resources.cpuset_mems) == (-1, "0")
    assert static.cgroups.read_cpu("/kubepods/podweb").quota is None
    assert static.state()["resources"]["limits"]["cpu"] == "2"


async def test_cpus_are_shared_again_when_the_pod_is_over(static: Node) -> None:
    static.add("small", containers=[container("s1")])
    await guaranteed(static, "2")
    await static.runs("small")
    assert on(static, "s1") == "0,3"
    static.api.delete("web", 1)
    await static.until(lambda: on(static, "s1") == "0-3")
    await guaranteed(static, "3", "next", "n1")
    assert on(static, "n1") == "1-3"


async def test_a_pod_for_which_no_cpus_are_left_is_rejected(static: Node) -> None:
    await guaranteed(static, "2")
    static.add("other", containers=[sized("2", name="o1")], qos="Guaranteed")
    await static.until(lambda: static.phase("other") == "Failed")
    status = static.api.status("other")
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["message"] == (
        "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: requested=2, "
        "available=1, which is unexpected"
    )


@pytest.mark.row("R-113")
async def test_cpu_of_a_guaranteed_pod_is_infeasible_and_memory_is_not(static: Node) -> None:
    await guaranteed(static, "500m")
    static.api.change("web", containers=[sized("600m")])
    await static.until(lambda: pending(static)[0] == "Infeasible")
    assert pending(static)[1] == 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
    assert static.state()["allocatedResources"]["cpu"] == "500m"


@pytest.mark.row("R-113")
async def test_memory_alone_changes_beside_the_static_cpu_policy(tmp_path: Path) -> None:
    config = replace(STATIC, memory_policy="None")
    node = Node(tmp_path / "node", managers=config, machine=replace(MACHINE, static_cpus=True))
    await node.start()
    await guaranteed(node, "2")
    node.api.change("web", containers=[sized("2", "200Mi")])
    await node.until(lambda: done(node) and node.state()["resources"]["limits"]["memory"] == "200Mi")
    assert (on(node, "c1"), node.state()["resources"]["limits"]["cpu"]) == ("1-2", "2")
    await node.kubelet.stop(stop_pods=False)


@pytest.mark.row("R-114")
async def test_memory_of_a_guaranteed_pod_is_infeasible_and_cpu_is_not(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", managers=replace(STATIC, cpu_policy="none"))
    await node.start()
    await guaranteed(node, "500m")
    node.api.change("web", containers=[sized("500m", "200Mi")])
    await node.until(lambda: pending(node)[0] == "Infeasible")
    assert pending(node)[1] == 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
    node.api.change("web", containers=[sized("600m")])
    await node.until(lambda: done(node) and node.state()["resources"]["limits"]["cpu"] == "600m")
    await node.kubelet.stop(stop_pods=False)


@pytest.mark.row("R-115")
async def test_a_burstable_pod_resizes_on_a_static_node(static: Node) -> None:
    def asks(cpu: str, memory: str) -> Document:
        return container("c1", resources={"requests": {"cpu": cpu, "memory": memory}})

    static.add(containers=[asks("1", "100Mi")])
    await static.runs()
    static.api.change("web", containers=[asks("2", "200Mi")])
    await static.until(lambda: done(static) and static.state()["allocatedResources"] == {"cpu": "2", "memory": "200Mi"})
    assert on(static, "c1") == "0-3"


async def test_with_the_gates_a_guaranteed_pod_resizes_on_what_it_was_given(lifted: Node) -> None:
    await guaranteed(lifted, "1")
    assert on(lifted, "c1") == "1"
    lifted.api.change("web", containers=[sized("2", "200Mi")])
    grown = {"cpu": "2", "memory": "200Mi"}
    await lifted.until(lambda: done(lifted) and lifted.state()["resources"]["limits"] == grown)
    resources = lifted.runtime.running("c1").resources
    assert resources is not None
    assert (resources.cpuset_cpus, resources.cpu_quota, resources.cpu_shares) == ("1", -1, 2048)


async def test_a_share_becomes_cpus_alone_with_the_gate(lifted: Node) -> None:
    """Quota and pool are left behind, pod cgroup first."""
    await guaranteed(lifted, "1500m")
    assert (on(lifted, "c1"), lifted.cgroups.read_cpu("/kubepods/podweb").quota) == ("0-3", 150_000)
    lifted.api.change("web", containers=[sized("2")])
    await lifted.until(lambda: done(lifted) and on(lifted, "c1") == "1-2")
    assert lifted.cgroups.read_cpu("/kubepods/podweb").quota is None


async def test_assignments_survive_a_crash_of_the_kubelet(static: Node) -> None:
    await guaranteed(static, "1", "a", "a1")
    await guaranteed(static, "1", "b", "b1")
    static.api.delete("a", 1)
    await static.until(lambda: static.api.get("pods", "a") is None)
    await static.crash()
    await static.start()
    await guaranteed(static, "1", "c", "c1")
    assert (on(static, "b1"), on(static, "c1")) == ("2", "1")


async def test_a_node_that_was_taken_down_may_have_another_policy(static: Node) -> None:
    await guaranteed(static, "2")
    await static.kubelet.stop(stop_pods=True)
    static.config = replace(static.config, managers=ManagersConfig())
    static.kubelet = static._kubelet()
    await static.start()
    await static.runs("web")
    assert on(static, "c1") == ""


async def test_a_damaged_state_is_rebuilt_from_what_runs(static: Node) -> None:
    await guaranteed(static, "1", "a", "a1")
    await guaranteed(static, "1", "b", "b1")
    static.api.delete("a", 1)
    await static.until(lambda: static.api.get("pods", "a") is None)
    await static.crash()
    (static.config.root / "cpu_manager_state").write_bytes(b"{}")
    static.kubelet = static._kubelet()
    await static.start()
    await guaranteed(static, "1", "c", "c1")
    assert (on(static, "b1"), on(static, "c1")) == ("2", "1")


async def test_a_container_that_could_not_be_moved_is_moved_later(static: Node) -> None:
    static.add("small", containers=[container("s1")])
    await static.runs("small")
    static.runtime.fail["update"] = "no"
    await guaranteed(static, "2")
    assert on(static, "s1") == "0-3"
    static.runtime.fail.clear()
    await static.advance(10)
    assert on(static, "s1") == "0,3"
