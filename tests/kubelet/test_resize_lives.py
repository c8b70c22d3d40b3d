"""Resizes that meet the rest of a pod's life: initialisation, crashes, a new kubelet, the end."""

import pytest

from kubelet.harness import Node
from kubelet.node_api import Document
from kubelet.test_resize_values import CGROUP, done, reasons, resizing, sized
from podfit.api.core.v1.pods.containers import Container
from podfit.api.meta.codec import convert
from podfit.decide.lifecycle.actions import definition_hash
from podfit.kubelet.pods.runtime_facts import observe

ON_MEMORY = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


def failing(node: Node) -> bool:
    return resizing(node).get("PodResizeInProgress", {}).get("reason") == "Error"


@pytest.mark.row("R-164")
@pytest.mark.parametrize("initialised", [False, True])
async def test_a_sidecar_is_resized_at_any_time(node: Node, initialised: bool) -> None:
    """In place for CPU, by a restart for memory; nothing else is touched."""

    def sidecar(cpu: str, memory: str) -> Document:
        return sized(cpu, memory, "side", restartPolicy="Always", resizePolicy=ON_MEMORY)

    setup = sized(name="setup")
    node.add(containers=[sized()], initContainers=[sidecar("100m", "100Mi"), setup])
    await node.until(lambda: "running" in node.state(which="setup").get("state", {}))
    if initialised:
        node.runtime.exit("setup", 0)
        await node.advance(0.5)
        await node.runs()
    others = [name for name in ("setup", "c1") if node.state(which=name).get("containerID")]
    before = {name: node.state(which=name)["containerID"] for name in others}
    node.api.change("web", initContainers=[sidecar("200m", "100Mi"), setup])
    await node.until(lambda: done(node))
    assert node.state(which="side")["resources"]["limits"]["cpu"] == "200m"
    assert node.state(which="side")["restartCount"] == 0
    node.api.change("web", initContainers=[sidecar("200m", "200Mi"), setup])
    await node.until(lambda: done(node) and node.state(which="side")["restartCount"] == 1)
    assert node.state(which="side")["resources"]["limits"]["memory"] == "200Mi"
    assert {name: node.state(which=name)["containerID"] for name in others} == before


@pytest.mark.row("R-165")
async def test_an_init_container_is_resized_while_it_runs(node: Node) -> None:
    node.add(containers=[sized()], initContainers=[sized("500m", name="setup")])
    await node.until(lambda: "running" in node.state(which="setup").get("state", {}))
    node.api.change("web", initContainers=[sized("800m", name="setup")])
    await node.until(lambda: done(node))
    assert node.state(which="setup")["resources"]["limits"]["cpu"] == "800m"
    assert node.cgroups.read_cpu(CGROUP).quota == 80_000
    assert node.runtime.calls.count("update setup") == 1
    assert reasons(node) == ["ResizeStarted", "ResizeCompleted"]


@pytest.mark.row("R-167")
async def test_a_container_that_crashes_during_a_resize_starts_with_its_new_size(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    node.runtime.fail["update"] = "no"
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: failing(node))
    node.runtime.exit("c1", 1)
    await node.advance(0.5)
    await node.until(lambda: node.state()["restartCount"] == 1 and done(node))
    resources = node.runtime.config("c1").resources
    assert resources is not None
    assert resources.cpu_quota == 20_000
    assert node.state()["resources"]["limits"]["cpu"] == "200m"


@pytest.mark.row("R-168")
async def test_a_container_killed_for_want_of_memory_comes_back_in_a_larger_pod(node: Node) -> None:
    node.add(containers=[sized(memory="100Mi")])
    await node.runs()
    for number in (1, 2):
        node.runtime.exit("c1", 137, "OOMKilled")
        await node.advance(0.5)
        await node.until(lambda: node.state()["restartCount"] == 1 or "waiting" in node.state()["state"], str(number))
    assert node.state()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    node.api.change("web", containers=[sized(memory="300Mi")])
    await node.until(lambda: node.cgroups.read_memory(CGROUP) == 300 << 20, "the pod does not wait for its container")
    await node.until(lambda: "running" in node.state()["state"] and done(node), "nor does it wait out its back-off")
    resources = node.runtime.config("c1").resources
    assert resources is not None
    assert resources.memory_limit == 300 << 20


@pytest.mark.row("R-112", "R-169")
async def test_a_kubelet_that_returns_asks_again_whether_a_resize_is_feasible(node: Node) -> None:
    node.add("web", containers=[sized("1")])
    await node.runs()
    held = node.api.get("pods", "web") or {}
    pending = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Infeasible",
        "message": "no",
        "observedGeneration": 2,
    }
    await node.crash()
    node.api.change("web", containers=[sized("2")])
    now = node.api.get("pods", "web") or {}
    conditions = [*held["status"]["conditions"], pending]
    node.api.put("pods", {**now, "status": {**now["status"], "conditions": conditions}})
    await node.start()
    await node.until(lambda: done(node))
    assert node.state()["resources"]["limits"]["cpu"] == "2"


@pytest.mark.row("R-171")
async def test_a_kubelet_that_returns_after_the_act_says_that_it_is_done(node: Node) -> None:
    node.add(containers=[sized()])
    await node.runs()
    await node.crash()
    pod = node.api.get("pods", "web") or {}
    progress = {"type": "PodResizeInProgress", "status": "True", "observedGeneration": 1}
    conditions = [*pod["status"]["conditions"], progress]
    node.api.put("pods", {**pod, "status": {**pod["status"], "conditions": conditions}})
    calls = list(node.runtime.calls)
    await node.clock.advance(1)
    await node.start()
    await node.until(lambda: done(node))
    assert reasons(node) == ["ResizeCompleted"]
    assert node.runtime.calls == calls


@pytest.mark.row("R-174")
async def test_a_runtime_that_is_away_during_a_resize_is_made_to_catch_up(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    node.runtime.fail |= dict.fromkeys(("list", "update"), "connection refused")
    node.api.change("web", containers=[sized("200m")])
    await node.advance(60)
    assert not done(node)
    node.runtime.fail.clear()
    await node.advance(0.5)
    await node.until(lambda: done(node))
    assert node.state()["resources"]["limits"]["cpu"] == "200m"
    assert node.state()["restartCount"] == 0


@pytest.mark.row("R-175")
@pytest.mark.parametrize("state", ["deferred", "failing", "asked for at the end"])
async def test_a_resize_never_holds_up_the_end(node: Node, state: str) -> None:
    node.add("web", terminationGracePeriodSeconds=5, containers=[sized("1")])
    node.add("big", containers=[sized("2", name="b1")])
    await node.runs("web")
    await node.runs("big")
    if state == "deferred":
        node.api.change("web", containers=[sized("3")])
        await node.until(lambda: "PodResizePending" in resizing(node))
    if state == "failing":
        node.runtime.fail["update"] = "no"
        node.api.change("web", containers=[sized("2")])
        await node.until(lambda: failing(node))
    node.runtime.stubborn.add("c1")
    calls = node.runtime.calls.count("update c1")
    node.api.delete("web", 5)
    await node.rest()
    if state == "asked for at the end":
        node.api.change("web", containers=[sized("2")])
    await node.advance(5.5)
    await node.until(lambda: node.api.get("pods", "web") is None)
    assert node.runtime.calls.count("update c1") == calls, "what ends is not resized any more"
    assert "kubelet_pod_in_progress_resizes 0.0" in node.kubelet.metrics.exposition().decode()


@pytest.mark.row("R-176", "R-187")
async def test_a_pod_that_is_over_has_neither_condition(node: Node) -> None:
    node.add("web", restartPolicy="Never", containers=[sized("1")])
    node.add("big", containers=[sized("2", name="b1")])
    await node.runs("web")
    await node.runs("big")
    node.runtime.fail["update"] = "no"
    node.api.change("web", containers=[sized("1500m")])
    await node.until(lambda: failing(node))
    node.api.change("web", containers=[sized("3")])
    await node.until(lambda: len(resizing(node)) == 2)
    node.runtime.exit("c1", 0)
    await node.advance(0.5)
    await node.until(lambda: node.phase() == "Succeeded")
    assert resizing(node) == {}
    node.api.change("web", containers=[sized("3500m")])  # nor does it get one later
    await node.rest()
    assert resizing(node) == {}
    metrics = node.kubelet.metrics.exposition().decode()
    assert "kubelet_pod_in_progress_resizes 0.0" in metrics
    assert 'kubelet_pod_pending_resizes{reason="deferred"} 0.0' in metrics


@pytest.mark.row("R-177")
async def test_ephemeral_containers_take_no_part(node: Node) -> None:
    extra = {"name": "debug", "image": "app:1"}
    node.add(containers=[sized("100m")], ephemeralContainers=[extra])
    await node.runs()
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: done(node))
    assert node.state()["resources"]["limits"]["cpu"] == "200m"
    assert (node.api.get("pods", "web") or {})["spec"]["ephemeralContainers"] == [{**extra, "resources": {}}]
    started = next(event for event in node.api.events() if event.startswith("ResizeStarted"))
    assert "debug" not in started


@pytest.mark.row("R-178")
def test_only_name_and_image_define_a_container() -> None:
    plain = {"name": "c1", "image": "app:1"}

    def hashed(**more: object) -> str:
        return definition_hash(convert({**plain, **more}, Container))

    amounts = {"requests": {"cpu": "1"}}
    assert hashed() == hashed(resources=amounts) == hashed(env=[{"name": "A", "value": "b"}], resizePolicy=ON_MEMORY)
    assert len({hashed(), hashed(image="app:2"), hashed(name="c2")}) == 3


@pytest.mark.row("R-181")
async def test_a_container_that_vanishes_between_list_and_inspect_is_not_there(node: Node) -> None:
    node.add(containers=[sized(), sized(name="c2")])
    await node.runs()
    node.runtime.vanish("c2")
    facts = await observe(node.runtime, "web")
    assert [container.name for container in facts.containers] == ["c1"]
    node.api.change("web", containers=[sized("200m"), sized(name="c2")])
    await node.until(lambda: done(node) and "running" in node.state(which="c2")["state"])
    assert node.state()["resources"]["limits"]["cpu"] == "200m"
    assert node.state()["restartCount"] == 0
