"""The kubelet against podfit's own API server: who it may be, and that what it writes is taken as it is meant."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import IDENTITY, Node
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node as NodeObject
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from support.server import Server, running_server


class Joined:
    """A node and a server that know each other."""

    def __init__(self, node: Node, server: Server) -> None:
        self.node = node
        self.server = server

    async def add(self, name: str = "web", **spec: Any) -> None:
        amounts = {"cpu": "100m", "memory": "100Mi"}
        plain = {"name": "c1", "image": "app:1", "resources": {"requests": amounts, "limits": amounts}}
        spec = {"nodeName": "n1", "containers": [plain], **spec}
        pod = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
        await self.server.client.create(convert(pod, Pod))

    async def pod(self, name: str = "web") -> Pod:
        return await self.server.client.get(Pod, name, "default")

    async def until(self, holds: Callable[[Pod], Any], name: str = "web") -> Pod:
        await self.node.rest()
        pod = await self.pod(name)
        assert holds(pod), to_dict(pod)["status"]
        return pod


@pytest.fixture
async def joined(tmp_path: Path) -> AsyncIterator[Joined]:
    node = Node(tmp_path / "node")
    async with running_server(tmp_path, clock=node.clock, certificate=True) as server:
        node.use(Client(Local(server.api.handler, IDENTITY)))
        await node.start()
        yield Joined(node, server)
        await node.kubelet.stop(stop_pods=False)


def resizing(pod: Pod) -> list[str]:
    return [condition.type for condition in pod.status.conditions if condition.type.startswith("PodResize")]


async def test_a_node_registers_and_renews(joined: Joined) -> None:
    node = await joined.server.client.get(NodeObject, "n1")
    assert {condition.type: condition.status for condition in node.status.conditions}["Ready"] == "True"
    await joined.node.rest()
    first = await joined.server.client.get(Lease, "n1", "kube-node-lease")
    await joined.node.advance(60)
    later = await joined.server.client.get(Lease, "n1", "kube-node-lease")
    assert (first.spec.renew_time or "") < (later.spec.renew_time or "")
    await joined.node.advance(240)
    beat = (await joined.server.client.get(NodeObject, "n1")).status.conditions[0].last_heartbeat_time
    assert beat == "2026-01-01T00:05:00Z"


async def test_a_pod_runs_is_resized_and_goes(joined: Joined) -> None:
    await joined.add()
    pod = await joined.until(lambda pod: pod.status.phase == "Running")
    assert [condition.type for condition in pod.status.conditions] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    bigger = {"cpu": "200m", "memory": "100Mi"}
    change = {"spec": {"containers": [{"name": "c1", "resources": {"requests": bigger, "limits": bigger}}]}}
    await joined.server.client.patch(Pod, "web", "default", change, subresource="resize")
    pod = await joined.until(
        lambda pod: pod.status.observed_generation == pod.metadata.generation == 2 and not resizing(pod)
    )
    status = pod.status.container_statuses[0]
    assert (status.restart_count, str(status.allocated_resources["cpu"])) == (0, "200m")
    assert status.resources is not None
    assert str(status.resources.limits["cpu"]) == "200m"
    await joined.server.client.delete(Pod, "web", "default")
    await joined.node.rest()
    with pytest.raises(ApiError, match="not found"):
        await joined.pod()
    assert not joined.node.runtime.boxes


async def test_events_arrive(joined: Joined) -> None:
    await joined.add()
    await joined.until(lambda pod: pod.status.phase == "Running")
    await joined.node.rest()
    events = (await joined.server.client.list(Event, "default")).items
    told = [event.reason for event in events if event.source.component == "kubelet"]
    assert [reason for reason in told if "Node" not in reason] == ["Starting", "Pulled", "Created", "Started"]
    assert "NodeReady" in told


async def test_a_node_reads_the_config_maps_of_its_pods(joined: Joined) -> None:
    config = convert({"metadata": {"name": "cm", "namespace": "default"}, "data": {"k": "v"}}, ConfigMap)
    await joined.server.client.create(config)
    ref = {"configMapKeyRef": {"name": "cm", "key": "k"}}
    await joined.add(containers=[{"name": "c1", "image": "app:1", "env": [{"name": "A", "valueFrom": ref}]}])
    await joined.until(lambda pod: pod.status.phase == "Running")
    assert ("A", "v") in joined.node.runtime.config("c1").envs


async def test_a_resize_waits_for_room_and_says_so(joined: Joined) -> None:
    await joined.add()
    large = {"requests": {"cpu": "3500m"}}
    await joined.add("big", restartPolicy="Never", containers=[{"name": "b1", "image": "app:1", "resources": large}])
    for name in ("web", "big"):
        await joined.until(lambda pod: pod.status.phase == "Running", name)
    bigger = {"cpu": "1", "memory": "100Mi"}
    change = {"spec": {"containers": [{"name": "c1", "resources": {"requests": bigger, "limits": bigger}}]}}
    await joined.server.client.patch(Pod, "web", "default", change, subresource="resize")
    await joined.until(lambda pod: resizing(pod) == ["PodResizePending"])
    joined.node.runtime.exit("b1", 0)
    await joined.node.advance(0.5)
    await joined.until(lambda pod: pod.status.observed_generation == 2 and not resizing(pod))


@pytest.mark.row("R-088")
async def test_a_pod_that_is_bound_while_a_resize_takes_its_room_fails_and_the_resized_one_goes_on(
    joined: Joined,
) -> None:
    """A scheduler that has not seen the resize yet binds the newcomer to room that is promised already."""
    await joined.add()
    running = await joined.until(lambda pod: pod.status.phase == "Running")
    large = {"cpu": "3", "memory": "100Mi"}
    change = {"spec": {"containers": [{"name": "c1", "resources": {"requests": large, "limits": large}}]}}
    newcomer = {"name": "c1", "image": "app:1", "resources": {"requests": {"cpu": "2"}}}
    await joined.add("late", nodeName="", containers=[newcomer])
    await joined.server.client.patch(Pod, "web", "default", change, subresource="resize")
    await joined.server.client.bind("default", "late", "n1")
    late = await joined.until(lambda pod: pod.status.phase == "Failed", "late")
    assert (late.status.reason, late.status.message) == (
        "OutOfcpu",
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
    )
    web = await joined.until(lambda pod: pod.status.observed_generation == 2 and not resizing(pod))
    before, after = running.status.container_statuses[0], web.status.container_statuses[0]
    assert (after.container_id, after.restart_count) == (before.container_id, 0)
    assert str(after.allocated_resources["cpu"]) == "3"
    later = await joined.pod("late")
    assert later.status.phase == "Failed"
