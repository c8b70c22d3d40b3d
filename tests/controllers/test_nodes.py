"""Nodes of which nothing is heard: unknown, tainted, and left by their pods."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import MERGE_PATCH
from podfit.decide.workload.nodes.health import pause
from podfit.testing.cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, nodes=2)
    yield made
    made.close()


def ghost(cluster: Cluster) -> None:
    """A node that nobody speaks for, with a pod that tolerates its absence for 20 seconds and one that always does."""
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}})
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    status = {"conditions": ready, "allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10"}}
    cluster.run(
        cluster.client.patch(Node, "ghost", "", {"status": status}, content_type=MERGE_PATCH, subresource="status")
    )
    for name, seconds in (("short", 20), ("long", None)):
        toleration: dict[str, Any] = {"operator": "Exists", "effect": "NoExecute"}
        if seconds is not None:
            toleration["tolerationSeconds"] = seconds
        spec = {"nodeName": "ghost", "tolerations": [toleration], "containers": [{"name": "c", "image": "i"}]}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def taints(cluster: Cluster) -> set[tuple[str, str]]:
    node = cluster.run(cluster.client.get(Node, "ghost"))
    return {(taint.key.removeprefix("node.kubernetes.io/"), taint.effect) for taint in node.spec.taints}


def told(cluster: Cluster, *reasons: str) -> list[tuple[str, str, str]]:
    found = cluster.run(cluster.client.list(Event, "default")).items
    return [
        (event.involved_object.name, event.reason, event.message)
        for event in found
        if event.reason in reasons and event.source.component != "kubelet"
    ]


def test_what_is_told_of_a_node(cluster: Cluster) -> None:
    ghost(cluster)
    cluster.clock.advance(80)
    cluster.run(cluster.client.delete(Node, "ghost"))
    cluster.clock.advance(1)
    assert [
        event for event in told(cluster, "RegisteredNode", "NodeNotReady", "RemovingNode") if event[0] == "ghost"
    ] == [
        ("ghost", "RegisteredNode", "Node ghost event: Registered Node ghost in Controller"),
        ("ghost", "NodeNotReady", "Node ghost status is now: NodeNotReady"),
        ("ghost", "RemovingNode", "Node ghost event: Removing Node ghost from Controller"),
    ]


def test_a_pod_that_need_not_go_any_more_is_told_so(cluster: Cluster) -> None:
    ghost(cluster)
    taint = {"key": "mine", "effect": "NoExecute"}
    for taints_now in ([taint], []):
        patch = {"spec": {"taints": taints_now}}
        cluster.run(cluster.client.patch(Node, "ghost", "", patch, content_type=MERGE_PATCH))
        cluster.clock.advance(5)
    assert told(cluster, "TaintManagerEviction") == [
        ("short", "TaintManagerEviction", "Cancelling deletion of Pod default/short")
    ]
    cluster.clock.advance(30)
    assert not cluster.run(cluster.client.get(Pod, "short", "default")).metadata.deletion_timestamp


def test_a_silent_node_becomes_unknown_and_its_pods_leave_when_they_must(cluster: Cluster) -> None:
    ghost(cluster)
    cluster.clock.advance(45)
    assert taints(cluster) == set()
    cluster.clock.advance(10)
    node = cluster.run(cluster.client.get(Node, "ghost"))
    told = {condition.type: (condition.status, condition.reason) for condition in node.status.conditions}
    assert told["Ready"] == ("Unknown", "NodeStatusUnknown")
    assert told["MemoryPressure"] == ("Unknown", "NodeStatusNeverUpdated")
    assert taints(cluster) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    cluster.clock.advance(30)
    short, long = (cluster.run(cluster.client.get(Pod, name, "default")) for name in ("short", "long"))
    assert short.metadata.deletion_timestamp
    assert {condition.type: condition.reason for condition in short.status.conditions}[
        "DisruptionTarget"
    ] == "DeletionByTaintManager"
    assert not long.metadata.deletion_timestamp


def test_taints_go_when_the_node_is_well_again(cluster: Cluster) -> None:
    ghost(cluster)
    cluster.clock.advance(80)
    assert taints(cluster)
    ready = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T01:00:00Z"}]
    cluster.run(
        cluster.client.patch(
            Node, "ghost", "", {"status": {"conditions": ready}}, content_type=MERGE_PATCH, subresource="status"
        )
    )
    cluster.clock.advance(1)
    assert taints(cluster) == set()


def test_a_cordoned_node_has_the_taint_of_it(cluster: Cluster) -> None:
    ghost(cluster)
    cluster.run(cluster.client.patch(Node, "ghost", "", {"spec": {"unschedulable": True}}))
    cluster.settle()
    assert taints(cluster) == {("unschedulable", "NoSchedule")}
    cluster.run(cluster.client.patch(Node, "ghost", "", {"spec": {"unschedulable": False}}))
    cluster.settle()
    assert taints(cluster) == set()


def node(name: str, status: str) -> Node:
    conditions = [{"type": "Ready", "status": status}]
    return convert({"metadata": {"name": name}, "status": {"conditions": conditions}}, Node)


@pytest.mark.parametrize(
    ("well", "sick", "seconds"),
    [(1, 1, 10.0), (0, 1, None), (0, 3, None), (3, 2, 10.0), (2, 3, None), (20, 60, 100.0), (1, 2, 10.0)],
)
def test_how_often_a_node_may_send_its_pods_away(well: int, sick: int, seconds: float | None) -> None:
    nodes = [node(f"n{place}", "True" if place < well else "Unknown") for place in range(well + sick)]
    assert pause(nodes, ("", "")) == seconds
