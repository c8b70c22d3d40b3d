"""A resize through the whole node: the pod's watch event goes in, the kernel's values and the status come out."""

from typing import Any

import pytest

from kubelet.harness import Node, container
from kubelet.node_api import Document
from podfit.kubelet.cgroup.protocol import CgroupError, CPUValues


def sized(cpu: str, memory: str = "100Mi", name: str = "c1", **more: Any) -> Document:
    amounts = {"cpu": cpu, "memory": memory}
    return container(name, resources={"requests": amounts, "limits": amounts}, **more)


def done(node: Node, name: str = "web") -> bool:
    pod = node.api.get("pods", name) or {}
    seen = pod["status"].get("observedGeneration", 0) >= pod["metadata"]["generation"]
    return seen and not [c for c in pod["status"]["conditions"] if c["type"].startswith("PodResize")]


@pytest.mark.row("R-093", "R-094", "R-095", "R-123", "R-146")
async def test_a_cpu_change_reaches_the_running_container_without_time_passing(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    before, now = node.state()["containerID"], node.clock.monotonic()
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: done(node) and node.state()["resources"]["limits"]["cpu"] == "200m")
    assert node.clock.monotonic() == now, "nothing on the path waits for a poll"
    resources = node.runtime.running("c1").resources
    assert resources is not None
    assert resources.cpu_quota == 20_000
    assert node.cgroups.read_cpu("/kubepods/burstable/podweb").quota == 20_000
    assert (node.state()["containerID"], node.state()["restartCount"]) == (before, 0)
    assert node.state()["allocatedResources"]["cpu"] == "200m"
    events = [event.split(":")[0] for event in node.api.events() if event.startswith("Resize")]
    assert events == ["ResizeStarted Pod resize started", "ResizeCompleted Pod resize completed"]


@pytest.mark.row("R-125", "R-127")
async def test_the_1_27_story(node: Node) -> None:
    """Memory restarts its container once; the other container is left alone."""
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    node.add(containers=[sized("100m", resizePolicy=policy), sized("100m", name="c2")])
    await node.runs()
    kept = node.state(which="c2")["containerID"]
    node.api.change("web", containers=[sized("100m", "200Mi", resizePolicy=policy), sized("100m", name="c2")])
    await node.until(lambda: done(node) and node.state()["restartCount"] == 1)
    await node.rest()
    assert node.state()["resources"]["limits"]["memory"] == "200Mi"
    assert node.state(which="c2")["containerID"] == kept
    assert node.cgroups.read_memory("/kubepods/burstable/podweb") == 300 << 20
    assert "Killing Container c1 resize requires restart" in node.api.events()


@pytest.mark.row("R-096", "R-100", "R-122")
async def test_growth_without_room_waits_and_completes_when_the_pod_in_its_way_ends(node: Node) -> None:
    node.add("web", containers=[sized("1")])
    node.add("big", restartPolicy="Never", containers=[sized("2", name="b1")])
    await node.runs("web")
    await node.runs("big")
    node.api.change("web", containers=[sized("3")])
    await node.until(lambda: node.condition("PodResizePending") is not None)
    pending = node.condition("PodResizePending") or {}
    assert pending["reason"] == "Deferred"
    assert pending["message"] == "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert node.api.status("web")["observedGeneration"] == 2
    assert node.state()["allocatedResources"]["cpu"] == "1"
    node.runtime.exit("b1", 0)
    await node.advance(0.5)
    await node.until(lambda: done(node))
    assert node.state()["resources"]["limits"]["cpu"] == "3"


@pytest.mark.row("R-099")
async def test_room_is_free_when_the_last_container_stopped_not_when_the_object_is_gone(node: Node) -> None:
    node.add("web", containers=[sized("1")])
    big = node.add("big", containers=[sized("2")])
    await node.runs("web")
    await node.runs("big")
    node.api.put("pods", {**big, "metadata": {**big["metadata"], "finalizers": ["x/y"]}})
    node.api.change("web", containers=[sized("3")])
    await node.until(lambda: node.condition("PodResizePending") is not None)
    node.api.delete("big", 5)
    await node.until(lambda: done(node))
    assert node.api.get("pods", "big") is not None


@pytest.mark.row("R-101")
async def test_shrinking_a_neighbour_makes_room(node: Node) -> None:
    node.add("web", containers=[sized("1")])
    node.add("big", containers=[sized("3")])
    await node.runs("web")
    await node.runs("big")
    node.api.change("web", containers=[sized("2")])
    await node.until(lambda: node.condition("PodResizePending") is not None)
    node.api.change("big", containers=[sized("1")])
    await node.until(lambda: done(node, "web") and done(node, "big"))


@pytest.mark.row("R-141", "R-142")
async def test_a_refused_change_is_told_and_tried_again(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    await node.advance(1)
    node.runtime.fail["update"] = "no"
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: (node.condition("PodResizeInProgress") or {}).get("reason") == "Error")
    assert (node.condition("PodResizeInProgress") or {})["message"] == "no"
    node.runtime.fail.clear()
    await node.advance(9.9)
    assert node.condition("PodResizeInProgress") is not None, "tried again after ten seconds and up to half as much"
    await node.advance(5.1)
    await node.until(lambda: done(node))
    assert [event.split()[0] for event in node.api.events()].count("ResizeError") == 1


@pytest.mark.row("R-141", "R-142")
async def test_a_file_that_could_not_be_read_for_a_moment_is_no_resize_that_goes_on(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn that finds all well again has nothing to do, and still says so."""
    node.add(containers=[sized("100m")])
    await node.runs()

    def broken(path: str) -> CPUValues:
        raise CgroupError(f"{path}: input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(node.cgroups, "read_cpu", broken)
        node.api.change("web", activeDeadlineSeconds=3600)
        await node.until(lambda: (node.condition("PodResizeInProgress") or {}).get("reason") == "Error")
    await node.advance(15)
    await node.until(lambda: node.condition("PodResizeInProgress") is None)


@pytest.mark.row("R-170")
async def test_a_crash_between_promise_and_act_is_made_good(node: Node) -> None:
    """The promise is in the checkpoint; the next kubelet keeps it."""
    node.add(containers=[sized("100m")])
    await node.runs()
    node.runtime.fail["update"] = "no"
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: node.condition("PodResizeInProgress") is not None)
    await node.crash()
    node.runtime.fail.clear()
    await node.start()
    await node.until(lambda: done(node))
    assert node.runtime.running("c1").attempt == 0


@pytest.mark.row("R-169", "R-172")
async def test_a_deferred_resize_survives_a_restart_and_does_not_displace_its_own_pod(node: Node) -> None:
    node.add("web", containers=[sized("1")])
    node.add("big", containers=[sized("3")])
    await node.runs("web")
    await node.runs("big")
    node.api.change("web", containers=[sized("2")])
    await node.until(lambda: node.condition("PodResizePending") is not None)
    await node.crash()
    await node.start()
    await node.rest()
    assert node.phase("web") == node.phase("big") == "Running"
    assert (node.condition("PodResizePending") or {})["reason"] == "Deferred"
    node.api.delete("big", 1)
    await node.until(lambda: done(node))


@pytest.mark.row("R-166")
async def test_a_container_that_crashes_while_deferred_restarts_with_what_was_promised(node: Node) -> None:
    node.add("web", containers=[sized("1")])
    node.add("big", containers=[sized("3", name="b1")])
    await node.runs("web")
    await node.runs("big")
    node.api.change("web", containers=[sized("2")])
    await node.until(lambda: node.condition("PodResizePending") is not None)
    node.runtime.exit("c1", 1)
    await node.advance(0.5)
    await node.until(lambda: node.state()["restartCount"] == 1)
    resources = node.runtime.config("c1").resources
    assert resources is not None
    assert resources.cpu_quota == 100_000


async def test_many_resizes_at_once_all_complete(node: Node) -> None:
    names = [f"p{number}" for number in range(12)]
    for name in names:
        node.add(name, containers=[sized("100m", name=f"c-{name}")])
    for name in names:
        await node.runs(name)
    for name in names:
        node.api.change(name, containers=[sized("200m", name=f"c-{name}")])
    await node.until(lambda: all(done(node, name) for name in names))
    assert sum(call.startswith("update") for call in node.runtime.calls) == len(names)


async def test_resizes_that_come_together_are_promised_together_and_told_once(node: Node) -> None:
    names = [f"p{number}" for number in range(12)]
    for name in names:
        node.add(name, containers=[sized("100m", name=f"c-{name}")])
    for name in names:
        await node.runs(name)
    promises = node.config.root / "allocated_pods_state"
    before, written = promises.read_bytes(), set[bytes]()
    for name in names:
        node.api.change(name, containers=[sized("200m", name=f"c-{name}")])

    def all_done() -> bool:
        written.add(promises.read_bytes())
        return all(done(node, name) for name in names)

    await node.until(all_done)
    assert len(written - {before}) <= 2


async def test_what_ends_while_a_resize_is_decided_is_seen(node: Node) -> None:
    """The runtime is asked while the promise is written; what it tells of then does not count if it changed."""
    node.add(containers=[sized("100m")])
    await node.runs()
    node.api.change("web", containers=[sized("200m")])
    node.runtime.exit("c1", 1)
    await node.until(lambda: done(node) and node.state()["restartCount"] == 1)
    assert "update c1" not in node.runtime.calls


async def test_a_resize_asked_for_while_the_kubelet_is_away_is_never_shown_as_done(node: Node) -> None:
    """No status with the new generation, without a condition and with the old size."""
    node.add(containers=[sized("100m")])
    await node.runs()
    await node.crash()
    node.api.change("web", containers=[sized("200m")])
    await node.start()
    await node.until(lambda: done(node))
    seen = [
        obj["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"]
        for _, obj in node.api.history("pods")
        if obj["status"].get("observedGeneration") == 2
        and not [condition for condition in obj["status"]["conditions"] if condition["type"].startswith("PodResize")]
    ]
    assert set(seen) == {"200m"}
