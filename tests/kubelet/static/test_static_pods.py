"""Static pods through a whole node: the file decides, the API shows."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import Node, container
from kubelet.node_api import Document


def manifest(*containers: Document, **spec: Any) -> Document:
    plain = {"terminationGracePeriodSeconds": 5, "containers": list(containers or [container("s1")]), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": plain}


def put(node: Node, document: Document, name: str = "web.yaml") -> Path:
    assert node.config.manifests is not None
    node.config.manifests.mkdir(exist_ok=True)
    path = node.config.manifests / name
    path.write_text(json.dumps(document))
    return path


def mirror(node: Node) -> Document:
    return node.api.get("pods", "web-n1") or {}


async def runs(node: Node, document: Document) -> Path:
    path = put(node, document)
    await node.advance(1)
    await node.until(lambda: node.phase("web-n1") == "Running", f"{mirror(node)}")
    return path


async def test_a_file_runs_as_a_pod_and_has_a_mirror(node: Node) -> None:
    await runs(node, manifest())
    found = mirror(node)
    marks = found["metadata"]["annotations"]
    assert marks["kubernetes.io/config.mirror"] == marks["kubernetes.io/config.hash"]
    assert marks["kubernetes.io/config.source"] == "file"
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Node", "n1", True)
    assert found["metadata"]["uid"] != marks["kubernetes.io/config.hash"]
    ((box, _),) = node.runtime.boxes.values()
    assert box.uid == marks["kubernetes.io/config.hash"], "the runtime knows the pod, not its mirror"
    assert node.state("web-n1", "s1")["ready"]


async def test_the_mirror_comes_back_and_the_pod_does_not_notice(node: Node) -> None:
    await runs(node, manifest())
    before, began = mirror(node)["metadata"]["uid"], node.runtime.running("s1").id
    node.api.delete("web-n1", 30)
    await node.until(lambda: mirror(node) and mirror(node)["metadata"]["uid"] != before)
    await node.until(lambda: node.phase("web-n1") == "Running")
    assert node.runtime.running("s1").id == began
    node.api.remove("pods", "web-n1")
    await node.until(lambda: node.phase("web-n1") == "Running")
    assert node.runtime.running("s1").id == began
    assert not [call for call in node.runtime.calls if call.startswith("stop")]


async def test_a_changed_file_is_another_pod_which_waits_for_the_end_of_the_first(node: Node) -> None:
    await runs(node, manifest())
    node.runtime.stubborn.add("s1")
    put(node, manifest(container("s2")))
    await node.advance(1)
    await node.rest()
    assert "create s2" not in node.runtime.calls, "the first one still ends"
    assert "stop s1 5s" in node.runtime.calls
    await node.advance(5)
    await node.until(lambda: node.state("web-n1", "s2").get("ready"))
    assert [status["name"] for status in mirror(node)["status"]["containerStatuses"]] == ["s2"]
    assert len(node.runtime.boxes) == 1


async def test_a_file_that_goes_takes_its_pod_and_its_mirror_along(node: Node) -> None:
    path = await runs(node, manifest())
    path.unlink()
    await node.advance(1)
    await node.until(lambda: not mirror(node) and not node.runtime.boxes)
    assert "stop s1 5s" in node.runtime.calls
    assert not node.cgroups.list_pods()


async def test_a_broken_file_leaves_its_pod_alone(node: Node) -> None:
    path = await runs(node, manifest())
    path.write_text("{")
    await node.advance(1)
    assert node.phase("web-n1") == "Running"
    assert not [call for call in node.runtime.calls if call.startswith("stop")]


async def test_a_restarted_kubelet_takes_its_static_pods_over(node: Node) -> None:
    await runs(node, manifest())
    began, shown = node.runtime.running("s1").id, mirror(node)["metadata"]["uid"]
    await node.crash()
    await node.start()
    await node.rest()
    assert (node.runtime.running("s1").id, mirror(node)["metadata"]["uid"]) == (began, shown)
    assert node.state("web-n1", "s1")["restartCount"] == 0


async def test_a_mirror_of_nothing_is_removed(node: Node) -> None:
    path = await runs(node, manifest())
    await node.crash()
    path.unlink()
    await node.start()
    await node.until(lambda: not mirror(node))
    await node.until(lambda: not node.runtime.boxes)


async def test_the_file_of_another_name_with_the_same_pod_is_not_run(node: Node) -> None:
    await runs(node, manifest())
    put(node, manifest(container("s2")), "copy.yaml")
    await node.advance(2)
    assert "create s2" not in node.runtime.calls


async def test_a_container_of_a_static_pod_restarts(node: Node) -> None:
    await runs(node, manifest())
    node.runtime.exit("s1", 1)
    await node.advance(0.5)
    await node.until(lambda: node.state("web-n1", "s1")["restartCount"] == 1)


async def test_without_the_api_a_static_pod_runs_all_the_same(node: Node) -> None:
    node.api.down = True
    put(node, manifest())
    await node.advance(1)
    await node.until(lambda: "start s1" in node.runtime.calls)
    assert not mirror(node)
    node.api.down = False
    await node.advance(10)
    await node.until(lambda: node.phase("web-n1") == "Running")


@pytest.mark.row("R-026")
async def test_a_change_of_the_mirrors_resources_changes_nothing(node: Node) -> None:
    """The API refuses it; and if it did not, nobody would look at it."""
    await runs(node, manifest(container("s1", resources={"limits": {"cpu": "100m"}, "requests": {"cpu": "100m"}})))
    calls = list(node.runtime.calls)
    node.api.change(
        "web-n1", containers=[container("s1", resources={"limits": {"cpu": "200m"}, "requests": {"cpu": "200m"}})]
    )
    await node.rest()
    await node.advance(61)
    assert [call for call in node.runtime.calls if call not in calls] == []


@pytest.mark.parametrize("seconds", [3600.0, -3600.0, 86400.0, -86400.0, 10 * 365.25 * 86400, -10 * 365.25 * 86400])
async def test_the_pod_runs_on_when_the_time_of_day_is_set(node: Node, seconds: float) -> None:
    """Also when its file is written again, as it is."""
    path = await runs(node, manifest())
    began, shown = node.runtime.running("s1").id, mirror(node)["metadata"]["uid"]
    for jump in (seconds, -seconds):
        node.clock.jump(jump)
        path.write_text(path.read_text())
        await node.advance(120)
        assert (node.runtime.running("s1").id, mirror(node)["metadata"]["uid"]) == (began, shown)
    assert node.state("web-n1", "s1")["restartCount"] == 0


async def test_a_port_of_the_host_is_given_once(node: Node) -> None:
    """To whoever came first, by the API or by a file; who comes when it is free gets it."""
    held = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    node.add("first", containers=[container("c1", **held)])
    await node.runs("first")
    node.add("second", containers=[container("c2", **held)])
    path = put(node, manifest(container("s1", **held)))
    await node.advance(1)
    text = "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    await node.until(lambda: {node.phase("second"), node.phase("web-n1")} == {"Failed"})
    for name in ("second", "web-n1"):
        assert (node.api.status(name)["reason"], node.api.status(name)["message"]) == ("NodePorts", text)
    path.unlink()
    node.api.delete("first", 0)
    await node.advance(1)
    await node.until(lambda: node.api.get("pods", "first") is None)
    node.add("third", containers=[container("c3", **held)])
    await node.runs("third")
