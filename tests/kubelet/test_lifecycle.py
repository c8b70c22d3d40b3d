"""A pod's life on a node, from its placement to its end."""

from kubelet.node import Node, container


async def test_a_pod_runs(node: Node) -> None:
    node.add()
    await node.runs()
    assert node.runtime.calls == ["sandbox web", "create c1", "start c1"]
    assert node.state()["ready"]
    assert node.state()["containerID"].startswith("fake://")
    assert node.api.status("web")["podIP"] == "10.0.0.1"
    assert node.api.events() == [
        'Pulled Container image "app:1" already present on machine and can be accessed by the pod',
        "Created Container created", "Started Container started"]
