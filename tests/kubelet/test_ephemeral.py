"""Ephemeral containers, as `kubectl debug` adds them: started once, never again, in nobody's way."""

from typing import Any

import pytest

from kubelet.harness import Node, container
from kubelet.node_api import Document


def guest(name: str = "dbg", **more: Any) -> Document:
    return {"name": name, "image": "app:1", "imagePullPolicy": "IfNotPresent", **more}


def sized(cpu: str) -> Document:
    return container("c1", resources={"requests": {"cpu": cpu}, "limits": {"cpu": cpu}})


def of(node: Node, name: str = "dbg") -> Document:
    statuses = node.api.status("web").get("ephemeralContainerStatuses", [])
    return next((status for status in statuses if status["name"] == name), {})


async def visited(node: Node, **spec: Any) -> None:
    """A pod that runs and has a guest."""
    node.add(**spec)
    await node.runs()
    node.api.change("web", ephemeralContainers=[guest(targetContainerName="c1")])
    await node.until(lambda: "running" in of(node).get("state", {}))


async def test_a_guest_runs_beside_the_others_and_sees_its_target(node: Node) -> None:
    await visited(node)
    status = of(node)
    assert (status["ready"], status["restartCount"], status["resources"]) == (False, 0, {})
    assert "started" not in status
    assert "allocatedResources" not in status
    config = node.runtime.config("dbg")
    assert config.security.target_id == node.runtime.running("c1").id
    assert config.resources is not None
    assert (config.resources.cpu_shares, config.resources.cpu_quota, config.resources.memory_limit) == (2, 0, 0)
    assert node.phase() == "Running"


async def test_a_guest_that_ended_is_not_started_again_and_the_pod_goes_on(node: Node) -> None:
    await visited(node)
    node.runtime.exit("dbg", 2)
    await node.advance(0.5)
    await node.until(lambda: "terminated" in of(node)["state"])
    assert of(node)["state"]["terminated"]["exitCode"] == 2
    await node.advance(120)
    assert node.runtime.calls.count("start dbg") == 1
    assert node.phase() == "Running"
    assert (node.condition("Ready") or {})["status"] == "True"


async def test_not_even_after_a_crash_that_lost_it(node: Node) -> None:
    await visited(node)
    await node.crash()
    await node.runtime.remove_container(node.runtime.running("dbg").id)
    await node.start()
    await node.rest()
    assert node.runtime.calls.count("start dbg") == 1
    assert of(node)["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


@pytest.mark.row("R-177")
async def test_a_resize_leaves_the_guest_alone(node: Node) -> None:
    await visited(node, containers=[sized("100m")])
    before = of(node)
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: node.state()["resources"]["limits"]["cpu"] == "200m")
    await node.rest()
    assert of(node) == before
    assert node.runtime.calls.count("update dbg") == 0
    assert "PodResizeInProgress" not in [condition["type"] for condition in node.api.status("web")["conditions"]]


@pytest.mark.row("R-177")
async def test_a_container_that_restarts_for_a_resize_does_not_bring_its_guest_back(node: Node) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    await visited(node, containers=[{**sized("100m"), "resizePolicy": policy}])
    node.runtime.exit("dbg", 0)
    await node.advance(0.5)
    node.api.change("web", containers=[{**sized("200m"), "resizePolicy": policy}])
    await node.until(lambda: node.state()["restartCount"] == 1)
    assert node.runtime.calls.count("start dbg") == 1


async def test_a_guest_whose_image_is_missing_waits_and_holds_up_nobody(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    node.api.change("web", ephemeralContainers=[guest(image="gone:1")])
    await node.until(lambda: of(node).get("state", {}).get("waiting", {}).get("reason") == "ErrImagePull")
    node.api.change("web", containers=[sized("200m")])
    await node.until(lambda: node.state()["resources"]["limits"]["cpu"] == "200m")
    node.runtime.pullable.add("gone:1")
    await node.advance(60)
    await node.until(lambda: "running" in of(node)["state"])


async def test_a_guest_without_its_target_says_so(node: Node) -> None:
    node.add(containers=[sized("100m")])
    await node.runs()
    node.api.change("web", ephemeralContainers=[guest(targetContainerName="nobody")])
    await node.until(lambda: of(node).get("state", {}).get("waiting", {}).get("reason") == "CreateContainerConfigError")
    assert of(node)["state"]["waiting"]["message"] == "unable to find target container nobody"


async def test_a_pod_ends_with_its_guest(node: Node) -> None:
    await visited(node, restartPolicy="Never")
    node.runtime.exit("c1", 0)
    await node.advance(0.5)
    await node.until(lambda: node.phase() == "Succeeded")
    assert "terminated" in of(node)["state"]
    assert "Killing Stopping container dbg" in node.api.events()


async def test_the_nodes_server_has_the_guests_log(node: Node) -> None:
    await visited(node)
    status, _ = await node.ask("/containerLogs/default/web/dbg")
    assert status == 200
    status, text = await node.ask("/containerLogs/default/web/nobody")
    assert (status, text) == (404, 'container "nobody" not found in pod "web"\n')
