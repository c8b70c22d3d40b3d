"""What the runtime is told and what the status says of it, through the whole node."""

from pathlib import Path

import pytest

from kubelet.harness import Node, container
from kubelet.node_api import Document
from podfit.kubelet.checkpoints.format import load

CGROUP = "/kubepods/burstable/podweb"
RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


def sized(cpu: str = "100m", memory: str = "100Mi", name: str = "c1", **more: object) -> Document:
    amounts = {"cpu": cpu, "memory": memory}
    return container(name, resources={"requests": amounts, "limits": amounts}, **more)


def resizing(node: Node, name: str = "web") -> dict[str, Document]:
    conditions = node.api.status(name).get("conditions", [])
    return {condition["type"]: condition for condition in conditions if condition["type"].startswith("PodResize")}


def done(node: Node, name: str = "web") -> bool:
    pod = node.api.get("pods", name) or {}
    return pod["status"].get("observedGeneration", 0) >= pod["metadata"]["generation"] and not resizing(node, name)


def reasons(node: Node) -> list[str]:
    return [event.split()[0] for event in node.api.events() if event.startswith("Resize")]


@pytest.mark.row("R-089")
async def test_the_promise_is_on_disk_before_the_pod_begins(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[set[str]] = []
    read, make = Path(node.config.root, "allocated_pods_state").read_bytes, node.runtime.run_sandbox

    async def looked(*args: object, **options: object) -> str:
        found.append(set(load(read())))
        return await make(*args, **options)  # type: ignore[arg-type]  # keywords of several types

    monkeypatch.setattr(node.runtime, "run_sandbox", looked)
    node.add(containers=[sized()])
    await node.runs()
    assert found == [{"web"}]


@pytest.mark.row("R-097")
async def test_nothing_moves_while_a_resize_is_deferred(node: Node) -> None:
    node.add("web", containers=[sized("1", resizePolicy=RESTARTS)])
    node.add("big", containers=[sized("3", name="b1")])
    await node.runs("web")
    await node.runs("big")
    before, held, calls = node.state(), dict(node.cgroups.groups), list(node.runtime.calls)
    node.api.change("web", containers=[sized("2", "200Mi", resizePolicy=RESTARTS)])
    await node.until(lambda: "PodResizePending" in resizing(node))
    await node.advance(400)
    assert (node.state(), node.cgroups.groups, node.runtime.calls) == (before, held, calls)


@pytest.mark.row("R-138", "R-139", "R-140")
async def test_a_runtime_that_objects_to_the_pods_size_stops_the_resize(node: Node) -> None:
    node.runtime.listens = True
    node.runtime.fail["tell"] = "a plugin says no"
    node.add(containers=[sized()])
    await node.runs()
    await node.advance(1)
    held = node.cgroups.groups[CGROUP]
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: resizing(node).get("PodResizeInProgress", {}).get("reason") == "Error")
    assert resizing(node)["PodResizeInProgress"]["message"] == (
        "failed to notify runtime for UpdatePodSandboxResources (resource=cpu); resize rejected: a plugin says no"
    )
    assert node.cgroups.groups[CGROUP] == held
    assert "update c1" not in node.runtime.calls
    node.runtime.listens = False  # as a runtime that does not know the call at all
    await node.advance(16)
    await node.until(lambda: done(node))


@pytest.mark.row("R-143", "R-144", "R-145")
async def test_memory_that_is_in_use_stays_until_the_limit_is_raised_again(node: Node) -> None:
    node.add(containers=[sized("100m", "100Mi")])
    await node.runs()
    node.cgroups.used = 80 << 20
    held, calls = node.cgroups.groups[CGROUP], list(node.runtime.calls)
    node.api.change("web", containers=[sized("200m", "50Mi")])
    await node.until(lambda: resizing(node).get("PodResizeInProgress", {}).get("reason") == "Error")
    text = f"memory limit ({50 << 20}) below current usage ({80 << 20})"
    assert text in resizing(node)["PodResizeInProgress"]["message"]
    assert "PodResizePending" not in resizing(node)
    assert (node.cgroups.groups[CGROUP], node.runtime.calls) == (held, calls), "CPU waits as well"
    assert node.state()["allocatedResources"] == {"cpu": "200m", "memory": "50Mi"}
    assert node.state()["resources"]["limits"] == {"cpu": "100m", "memory": "100Mi"}
    node.api.change("web", containers=[sized("200m", "90Mi")])
    await node.until(lambda: done(node))
    assert node.state()["resources"]["limits"] == {"cpu": "200m", "memory": "90Mi"}
    assert node.cgroups.read_memory(CGROUP) == 90 << 20


@pytest.mark.row("R-147")
async def test_amounts_below_what_the_kernel_tells_apart_are_shown_as_asked_for(node: Node) -> None:
    def tiny(request: str, limit: str) -> Document:
        return container("c1", resources={"requests": {"cpu": request}, "limits": {"cpu": limit}})

    node.add(containers=[tiny("2m", "10m")])
    await node.runs()
    node.api.change("web", containers=[tiny("1m", "5m")])
    await node.until(lambda: done(node))
    assert node.state()["resources"] == {"requests": {"cpu": "1m"}, "limits": {"cpu": "5m"}}
    assert reasons(node) == ["ResizeStarted", "ResizeCompleted"]


@pytest.mark.row("R-148")
async def test_a_runtime_that_tells_no_resources_is_replaced_by_the_record(node: Node) -> None:
    node.runtime.silent = True
    node.add(containers=[sized("100m")])
    await node.runs()
    node.runtime.fail["update"] = "no"
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: resizing(node).get("PodResizeInProgress", {}).get("reason") == "Error")
    assert node.state()["resources"]["limits"]["cpu"] == "100m"
    node.runtime.fail.clear()
    await node.advance(16)
    await node.until(lambda: done(node))
    assert node.state()["resources"]["limits"]["cpu"] == "200m"


@pytest.mark.row("R-149", "R-150", "R-151")
async def test_which_resources_a_status_has(node: Node) -> None:
    storage = {"cpu": "100m", "ephemeral-storage": "1Gi"}
    node.add(
        containers=[
            container("c1", resources={"requests": storage, "limits": storage}),
            container("c2", resources={}),
            container("c3", image="missing:1"),
        ]
    )
    await node.until(lambda: node.state(which="c3").get("state", {}).get("waiting", {}).get("message"))
    assert node.state()["resources"] == {"requests": storage, "limits": storage}
    assert node.state(which="c2")["resources"] == {}
    assert "allocatedResources" not in node.state(which="c2")
    assert not {"resources", "allocatedResources"} & node.state(which="c3").keys()


@pytest.mark.row("R-152")
async def test_what_a_plugin_altered_is_shown_and_left_alone(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    await node.advance(1)
    node.runtime.alter("c1", cpu_quota=15_000)
    calls = list(node.runtime.calls)
    await node.advance(200)
    assert node.state()["resources"]["limits"]["cpu"] == "150m"
    assert node.state()["allocatedResources"]["cpu"] == "100m"
    assert (node.runtime.calls, resizing(node), reasons(node)) == (calls, {}, [])


@pytest.mark.row("R-126", "R-153")
async def test_a_container_started_anew_is_spared_by_its_new_size(node: Node) -> None:
    """Of 4 GiB: a request of a quarter is spared by 250 points, of a half by 500."""

    def asking(memory: str) -> Document:
        return container("c1", resources={"requests": {"memory": memory}}, resizePolicy=RESTARTS)

    node.add(containers=[asking("1Gi")])
    await node.runs()
    first = node.runtime.config("c1").resources
    node.api.change("web", containers=[asking("2Gi")])
    await node.until(lambda: done(node) and node.state()["restartCount"] == 1)
    second = node.runtime.config("c1").resources
    assert first is not None
    assert second is not None
    assert (first.oom_score_adj, second.oom_score_adj) == (750, 500)


@pytest.mark.row("R-161")
async def test_a_new_pod_with_resources_of_its_own_reports_no_resize(node: Node) -> None:
    node.add(containers=[container("c1", resources={})], resources={"requests": {"cpu": "1", "memory": "1Gi"}})
    await node.runs()
    await node.advance(100)
    assert reasons(node) == []
    assert resizing(node) == {}


@pytest.mark.row("R-159", "R-162")
async def test_the_pods_own_figures_follow_a_resize(node: Node) -> None:
    def level(memory: str) -> Document:
        return {"requests": {"cpu": "1", "memory": memory}, "limits": {"cpu": "1", "memory": "2Gi"}}

    node.add(containers=[container("c1", resources={})], resources=level("1Gi"))
    await node.runs()
    assert node.api.status("web")["resources"] == level("1Gi")
    node.api.change("web", resources=level("1536Mi"))
    await node.until(lambda: done(node))
    assert node.api.status("web")["allocatedResources"] == level("1536Mi")["requests"]
    assert node.api.status("web")["resources"] == level("1536Mi")
