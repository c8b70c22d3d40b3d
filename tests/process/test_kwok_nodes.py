"""`--play-kwok-nodes`: Nodes as upstream's kwok providers create them, driven through the API as those would.

The requests were written down from upstream's code: cluster-autoscaler/cloudprovider/kwok of kubernetes/autoscaler
(`kwok_nodegroups.go`, `kwok_helpers.go`, `kwok_constants.go`) and kwok/cloudprovider of kubernetes-sigs/karpenter
(`cloudprovider.go`). The programs themselves were not run.
"""

import json
from datetime import timedelta
from typing import Any

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.core.errors import ApiError
from podfit.core.times import format_micro
from podfit.decide.node import simulated
from podfit.testing.cluster import Clock, Cluster
from podfit.testing.views import PodView

playing = pytest.mark.podfit(nodes=0, play_kwok_nodes=True)
SIZE = {"cpu": "12", "memory": "32781516Ki", "ephemeral-storage": "959786032Ki", "hugepages-2Mi": "0", "pods": "110"}
CONDITION = {"type": "Ready", "status": "Unknown", "reason": "Copied", "message": "of another cluster"}


def of_cluster_autoscaler(suffix: str = "abcde") -> dict[str, Any]:
    """A node of a template copied from another cluster; IncreaseSize gives it name, providerID and annotations."""
    name = f"group-1730000000-{suffix}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": "kind-worker", "kubernetes.io/os": "linux", "kwok-nodegroup": "group"},
            "annotations": {
                "kwok.x-k8s.io/node": "fake",
                "cluster-autoscaler.kwok.nodegroup/name": "group-1730000000",
                "metrics.k8s.io/resource-metrics-path": f"/metrics/nodes/{name}/metrics/resource",
            },
        },
        "spec": {
            "podCIDR": "10.244.2.0/24",
            "podCIDRs": ["10.244.2.0/24"],
            "providerID": f"kwok:{name}",
            "taints": [{"key": "kwok-provider", "value": "true", "effect": "NoSchedule"}],
        },
        "status": {
            "addresses": [{"type": "InternalIP", "address": "172.18.0.3"}],
            "allocatable": SIZE | {"cpu": "11500m"},
            "capacity": SIZE,
            "conditions": [CONDITION],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"kubeletVersion": "fake", "machineID": "1", "operatingSystem": "linux"},
        },
    }


def of_karpenter() -> dict[str, Any]:
    name = "sad-curie-123456789"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": "default-abc12",
                "node.kubernetes.io/instance-type": "c-4x-amd64-linux",
                "karpenter.sh/nodepool": "default",
                "karpenter.sh/capacity-type": "spot",
                "topology.kubernetes.io/zone": "test-zone-a",
                "kwok.x-k8s.io/node": "fake",
                "kwok-partition": "partition-c",
            },
            "annotations": {"kwok.x-k8s.io/node": "fake", "karpenter.sh/nodepool-hash": "1"},
        },
        "spec": {
            "providerID": f"kwok://{name}",
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
        },
        "status": {
            "phase": "Pending",
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "1"},
            "allocatable": {"cpu": "3900m", "memory": "7Gi", "pods": "110", "nvidia.com/gpu": "1"},
        },
    }


def plain(name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **more}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "500m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "tolerations": [{"key": "kwok-provider", "operator": "Exists"}], **spec},
    }


def create(cluster: Cluster, node: dict[str, Any]) -> None:
    """As a provider does: one POST."""
    body = node_bytes(node)
    cluster.run(cluster.client.request("POST", "/api/v1/nodes", body))
    cluster.settle()


def node_bytes(node: dict[str, Any]) -> bytes:
    return json.dumps(node).encode()


def named(cluster: Cluster, name: str) -> Node:
    return cluster.run(cluster.client.get(Node, name))


def ready(node: Node) -> str:
    return next((condition.status for condition in node.status.conditions if condition.type == "Ready"), "")


def played(cluster: Cluster) -> list[str]:
    return sorted(node.name for node in cluster._composed.all_nodes)


def refusals(cluster: Cluster) -> dict[str, str]:
    told = {event.about: event.message for event in cluster.events() if event.reason == "NotPlayed"}
    return {name: message.partition("kwok.x-k8s.io/node: ")[2] for name, message in told.items()}


@playing
def test_a_node_of_the_cluster_autoscaler_becomes_ready_and_runs_pods(cluster: Cluster) -> None:
    made = of_cluster_autoscaler()
    create(cluster, made)
    node = named(cluster, made["metadata"]["name"])
    assert ready(node) == "True"
    assert node.spec.provider_id == made["spec"]["providerID"]
    assert [taint.key for taint in node.spec.taints] == ["kwok-provider"]
    assert node.metadata.labels["kubernetes.io/hostname"] == "kind-worker", "what the template says stays"
    assert node.metadata.labels["podfit.dev/simulated"] == "true"
    assert "nothing runs" in node.metadata.annotations["podfit.dev/simulated"]
    assert {name: str(amount) for name, amount in node.status.capacity.items()} == SIZE
    assert str(node.status.allocatable["cpu"]) == "11500m"

    cluster.apply(pod("tolerant"), pod("not", tolerations=[]))
    assert (cluster.pod("tolerant").phase, cluster.pod("not").phase) == ("Running", "Pending")
    cluster.resize("tolerant", app={"requests": {"cpu": "11"}})
    grown: PodView = cluster.pod("tolerant")
    assert (grown.actual.cpu, grown.restarts) == (11, 0)
    with pytest.raises(ApiError, match="cpu, requested: 11600, allocatable: 11500"):
        cluster.resize("tolerant", app={"requests": {"cpu": "11600m"}})


@playing
def test_a_node_of_karpenter_is_ready_before_and_after_it_registers(cluster: Cluster) -> None:
    made = of_karpenter()
    create(cluster, made)
    name = made["metadata"]["name"]
    node = named(cluster, name)
    assert (ready(node), [taint.key for taint in node.spec.taints]) == ("True", ["karpenter.sh/unregistered"])
    assert made["metadata"]["labels"].items() <= node.metadata.labels.items()
    gpu = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    cluster.apply(pod("one", containers=[{"name": "app", "image": "app:1", "resources": gpu}]))
    assert cluster.pod("one").phase == "Pending"
    # registration: the taint goes, a label and an owner come
    labels = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    cluster.run(cluster.client.patch(Node, name, "", {"metadata": {"labels": labels}, "spec": {"taints": None}}))
    cluster.settle()
    assert cluster.pod("one").phase == "Running"
    assert named(cluster, name).metadata.labels["karpenter.sh/registered"] == "true"


@playing
def test_a_node_that_is_deleted_goes_with_its_pods_and_does_not_come_back(cluster: Cluster, clock: Clock) -> None:
    create(cluster, of_cluster_autoscaler())
    name = of_cluster_autoscaler()["metadata"]["name"]
    cluster.apply(pod("web"))
    directory = cluster._composed.options.data.played(name)
    assert played(cluster) == [name]
    assert directory.is_dir()
    cluster.delete(name, kind="Node")
    assert played(cluster) == []
    assert not directory.exists()
    clock.advance(minutes=3)
    assert (cluster.nodes(), cluster.pods()) == ([], [])


@playing
def test_nodes_made_and_deleted_fast_leave_the_last_one(cluster: Cluster) -> None:
    async def storm() -> None:
        for _ in range(20):
            await cluster.client.request("POST", "/api/v1/nodes", node_bytes(of_cluster_autoscaler()))
            await cluster.client.delete(Node, of_cluster_autoscaler()["metadata"]["name"], "")
        await cluster.client.request("POST", "/api/v1/nodes", node_bytes(of_cluster_autoscaler()))

    cluster.run(storm())
    cluster.settle()
    assert [ready(node) for node in cluster.nodes()] == ["True"]
    assert len(played(cluster)) == 1
    cluster.apply(pod("web"))
    assert cluster.pod("web").phase == "Running"


@pytest.mark.podfit(nodes=1, play_kwok_nodes=True)
def test_a_node_that_has_a_kubelet_is_never_played(cluster: Cluster, clock: Clock) -> None:
    """Our own; one whose Lease another renews; one with a Lease of its own kubelet, even when that is silent; one whose
    kubelet has told its version."""
    annotation = {"metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}}}
    cluster.run(cluster.client.patch(Node, "simulated-1", "", annotation))
    lease(cluster, "others", "kwok-7f", 0)
    create(cluster, plain("others"))
    create(cluster, plain("versioned", status={"nodeInfo": {"kubeletVersion": "v1.34.0"}}))
    create(cluster, plain("silent") | {"metadata": {"name": "silent"}})
    lease(cluster, "silent", "silent", -3600, owner=named(cluster, "silent").metadata.uid)
    cluster.run(cluster.client.patch(Node, "silent", "", annotation))
    cluster.settle()
    assert played(cluster) == ["simulated-1"]
    assert refusals(cluster).keys() == {"simulated-1", "others", "versioned", "silent"}
    assert "'kwok-7f'" in refusals(cluster)["others"]
    clock.advance(seconds=30)
    assert played(cluster) == ["simulated-1"]
    clock.advance(seconds=15)
    assert played(cluster) == ["others", "simulated-1"], "nobody has renewed its Lease"
    assert ready(named(cluster, "others")) == "True"

    lease(cluster, "others", "kwok-7f", 0)
    assert played(cluster) == ["simulated-1"], "it was taken over"
    assert ready(named(cluster, "versioned")) != "True"


def lease(cluster: Cluster, name: str, holder: str, age: float, *, owner: str = "") -> None:
    owners = [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner}] if owner else []
    renewed = format_micro(cluster._virtual.now() + timedelta(seconds=age))
    cluster.apply(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": owners},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 40, "renewTime": renewed},
        },
        namespace="kube-node-lease",
    )


@playing
def test_what_is_asked_for_too_much_is_refused_and_said(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "MOST_PLAYED", 2)
    huge = "9" * 18
    create(cluster, plain("huge", status={"capacity": {"cpu": huge, "memory": "1Gi", "pods": "1"}}))
    create(cluster, plain("less", status={"capacity": {"cpu": "1"}, "allocatable": {"cpu": "2"}}))
    many = {f"example.com/{number}": "1" for number in range(100)}
    create(cluster, plain("many", status={"capacity": many}))
    long = ".".join(["n" * 62] * 4)
    for name in ("a", long, "c"):
        create(cluster, plain(name))
    assert played(cluster) == sorted(["a", long])
    told = refusals(cluster)
    assert told.keys() == {"huge", "less", "many", "c"}
    assert f"its cpu is {huge}, the most is 1 million CPUs" in told["huge"]
    cluster.delete("a", kind="Node")
    assert played(cluster) == sorted(["c", long]), "there is room for one more"


@playing
def test_without_its_annotation_it_is_left_and_its_mark_stays_while_it_is_played(cluster: Cluster) -> None:
    create(cluster, plain("a"))
    cluster.run(cluster.client.patch(Node, "a", "", {"metadata": {"labels": {"podfit.dev/simulated": None}}}))
    cluster.settle()
    assert named(cluster, "a").metadata.labels["podfit.dev/simulated"] == "true"
    cluster.run(cluster.client.patch(Node, "a", "", {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}}))
    cluster.settle()
    assert played(cluster) == []


def test_nobody_plays_a_node_unasked(cluster: Cluster) -> None:
    create(cluster, plain("a"))
    assert ready(named(cluster, "a")) != "True"


@playing
def test_load_and_loss_work_on_a_played_node(cluster: Cluster, clock: Clock) -> None:
    create(cluster, plain("a"))
    cluster.apply(pod("web"))
    cluster.load("web", cpu=0.25)
    clock.advance(seconds=60)
    usage = cluster.get("metrics.k8s.io/v1beta1", "PodMetrics", "web")
    assert usage["containers"][0]["usage"]["cpu"] not in ("0", "")
    cluster.lose_node("a")
    clock.advance(seconds=60)
    assert ready(named(cluster, "a")) == "Unknown"
    cluster.restore_node("a")
    clock.advance(seconds=30)
    assert ready(named(cluster, "a")) == "True"
    with pytest.raises(ApiError):
        named(cluster, "simulated-1")
