"""Pressure and shutdown of a node: what the API is told, and who is kept out."""

import os
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import Node, container
from kubelet.test_eviction import full_until_images_go
from podfit.decide.node.pressure import Observation, parse
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.cgroup.protocol import CgroupConfig
from podfit.kubelet.node.machine import limits_swap
from podfit.kubelet.node.pressure import MachineSignals, MemoryShare, PressureMonitor, memory
from support.clock import FakeClock


def condition(node: Node, kind: str) -> dict[str, Any]:
    found = node.api.get("nodes", "n1", "") or {}
    return next(condition for condition in found["status"]["conditions"] if condition["type"] == kind)


def told(node: Node, kind: str) -> tuple[str, str, str]:
    found = condition(node, kind)
    return found["status"], found["reason"], found["message"]


def pending(node: Node) -> tuple[str, str]:
    found = node.condition("PodResizePending") or {}
    return found.get("reason", ""), found.get("message", "")


def sized(cpu: str) -> dict[str, Any]:
    return container("c1", resources={"requests": {"cpu": cpu}, "limits": {"cpu": cpu}})


@pytest.mark.row("R-118")
async def test_disk_pressure_defers_a_resize_until_it_is_over(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    full_until_images_go(node, "nodefs.available")
    await node.advance(10)
    assert told(node, "DiskPressure") == ("True", "KubeletHasDiskPressure", "kubelet has disk pressure")
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: pending(node)[0] == "Deferred")
    assert pending(node)[1] == "The node had condition: [DiskPressure]. "
    node.add("late", containers=[sized("100m")])
    await node.until(lambda: node.phase("late") == "Failed")
    assert node.api.status("late")["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "
    await node.advance(290)
    assert told(node, "DiskPressure")[0] == "True"
    await node.advance(10)
    assert told(node, "DiskPressure") == ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
    await node.until(lambda: node.state()["resources"]["limits"]["cpu"] == "200m")


async def test_every_pressure_has_its_words(node: Node) -> None:
    node.signals["memory.available"] = Observation(99 << 20, 8 << 30)
    await node.advance(10)
    assert told(node, "MemoryPressure") == (
        "True",
        "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available",
    )
    assert told(node, "PIDPressure") == ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available")
    assert told(node, "Ready")[0] == "True"


@pytest.mark.row("R-118")
async def test_a_node_that_shuts_down_takes_no_resize_and_no_pod(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    await node.kubelet.shut_down()
    assert told(node, "Ready") == ("False", "KubeletNotReady", "node is shutting down")
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: pending(node)[0] == "Deferred")
    assert pending(node)[1] == "Pod was rejected as the node is shutting down."
    node.add("late", containers=[sized("100m")])
    await node.until(lambda: node.phase("late") == "Failed")
    assert node.api.status("late")["reason"] == "NodeShutdown"


def test_a_look_that_fails_changes_nothing() -> None:
    def broken() -> dict[str, Observation]:
        raise OSError("no /proc")

    monitor = PressureMonitor(broken, parse("memory.available<1Mi"), clock=FakeClock())
    monitor.look()
    assert (monitor.conditions, monitor.changed.is_set()) == ((), False)


def test_this_machine_tells_what_it_has_left(tmp_path: Path) -> None:
    seen = MachineSignals(nodefs=tmp_path / "not" / "there", imagefs=tmp_path)()
    disk = os.statvfs(tmp_path)
    assert seen["nodefs.available"].capacity == disk.f_blocks * disk.f_frsize
    assert {"memory.available", "pid.available", "imagefs.available"} <= seen.keys()
    assert all(0 < observation.available <= observation.capacity for observation in seen.values())


def test_idle_file_cache_is_available() -> None:
    info = {"MemTotal": "1000 kB", "MemFree": "100 kB", "Inactive(file)": "50 kB"}
    assert memory(info) == Observation(150 << 10, 1000 << 10)


def test_whether_cgroups_limit_swap_is_read_off_the_tree(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    assert not limits_swap("v1", tmp_path)
    (tmp_path / "memory" / "memory.memsw.limit_in_bytes").touch()
    assert limits_swap("v1", tmp_path)
    assert not limits_swap("v2", tmp_path)
    (tmp_path / "memory" / "memory.swap.max").touch()
    assert limits_swap("v2", tmp_path)


def test_a_share_of_the_memory_is_what_there_is(tmp_path: Path) -> None:
    cgroups = MemoryCgroups()
    cgroups.create("/pods/one", CgroupConfig())
    cgroups.create("/pods", CgroupConfig(memory_limit=1000))
    cgroups.usage["/pods/one"] = 400
    share = MemoryShare(cgroups, "/pods", 1000)
    seen = MachineSignals(nodefs=tmp_path, imagefs=tmp_path, share=share)()
    assert seen["memory.available"] == Observation(600, 1000)
    cgroups.usage["/pods/one"] = 1400
    assert share.left() == Observation(0, 1000)


def test_a_share_that_is_gone_says_nothing(tmp_path: Path) -> None:
    share = MemoryShare(MemoryCgroups(), "/gone", 1000)
    signals = MachineSignals(nodefs=tmp_path, imagefs=tmp_path, share=share)
    monitor = PressureMonitor(signals, parse("memory.available<1Mi"), clock=FakeClock())
    monitor.look()
    assert monitor.conditions == ()
