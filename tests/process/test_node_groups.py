"""`--node-groups`: the cluster autoscaler of `podfit up`, on nodes that are played, on the clock of a test."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podfit.api.core.v1.config.types import ConfigMap
from podfit.client.places import makes_places
from podfit.core.errors import ApiError
from podfit.testing.cluster import Cluster

GROUPS = Path(__file__).parents[2] / "examples" / "node-groups.yaml"
grouped = pytest.mark.podfit(nodes=0, node_groups=GROUPS)
STATUS = "cluster-autoscaler-status"


def deployment(name: str, replicas: int, cpu: str = "1", **pod: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    spec = {"containers": [{"name": "app", "image": "registry.k8s.io/pause:3.10", "resources": resources}], **pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def status(cluster: Cluster) -> dict[str, Any]:
    there = cluster.run(cluster.client.get(ConfigMap, STATUS, "kube-system"))
    assert there.metadata.annotations["cluster-autoscaler.kubernetes.io/last-updated"]
    told: dict[str, Any] = yaml.safe_load(there.data["status"])
    return told


def outlook(cluster: Cluster) -> dict[str, Any]:
    there = cluster.run(cluster.client.get(ConfigMap, STATUS, "kube-system"))
    told: dict[str, Any] = json.loads(there.data["podfit-outlook"])
    return told


def reasons(cluster: Cluster, name: str, namespace: str = "default") -> list[str]:
    return [event.reason for event in cluster.events(name, namespace=namespace)]


@grouped
def test_nodes_come_for_pods_and_go_when_nobody_needs_them(cluster: Cluster) -> None:
    cluster.apply(deployment("web", 3))
    cluster.clock.advance(60)
    assert {pod.phase for pod in cluster.pods()} == {"Running"}
    nodes = [node.metadata.name for node in cluster.nodes()]
    assert len(nodes) == 2
    assert all(name.startswith("small-") for name in nodes)
    told = status(cluster)
    assert told["autoscalerStatus"] == "Running"
    assert told["clusterWide"]["health"]["nodeCounts"]["registered"]["ready"] == 2
    assert [group["name"] for group in told["nodeGroups"]] == ["small", "large"]
    assert told["nodeGroups"][0]["health"]["cloudProviderTarget"] == 2
    assert {"ScaledUpGroup"} <= set(reasons(cluster, STATUS, "kube-system"))
    assert any("TriggeredScaleUp" in reasons(cluster, pod.name) for pod in cluster.pods())
    assert cluster.run(makes_places(cluster.client, cluster._virtual))
    cluster.delete("web", kind="Deployment", api_version="apps/v1")
    cluster.clock.advance(minutes=8)
    assert len(cluster.nodes()) == 2
    assert all(node["removed"] for node in outlook(cluster)["nodes"])
    cluster.clock.advance(minutes=6)
    assert cluster.nodes() == []
    assert "ScaleDownEmpty" in reasons(cluster, STATUS, "kube-system")


@grouped
def test_a_node_is_drained_where_its_pods_have_a_place(cluster: Cluster) -> None:
    cluster.apply(deployment("web", 3, cpu="900m"))
    cluster.clock.advance(60)
    assert len(cluster.nodes()) == 2
    cluster.apply(deployment("web", 2, cpu="900m"))
    cluster.clock.advance(minutes=14)
    assert len(cluster.nodes()) == 1
    assert {pod.phase for pod in cluster.pods()} == {"Running"}
    assert len(cluster.pods()) == 2


@grouped
def test_a_waiting_resize_gets_a_node_for_its_neighbour(cluster: Cluster) -> None:
    """The neighbour runs elsewhere then, and the resize is granted where the pod is, without a restart."""
    cluster.apply(deployment("web", 1, cpu="900m"), deployment("db", 1, cpu="900m", priorityClassName=""))
    cluster.clock.advance(60)
    [node] = cluster.nodes()
    db = next(pod for pod in cluster.pods() if pod.name.startswith("db-"))
    cluster.resize(db.name, app={"requests": {"cpu": "1500m"}})
    cluster.clock.advance(20)
    [told] = outlook(cluster)["pods"]
    assert (told["act"], told["pod"]) == ("node", db.name)
    assert told["begins"]
    cluster.clock.advance(100)
    assert len(cluster.nodes()) == 2
    web = next(pod for pod in cluster.pods() if pod.name.startswith("web-"))
    assert web.document["spec"]["nodeName"] != node.metadata.name
    after = cluster.pod(db.name)
    assert after.document["spec"]["nodeName"] == node.metadata.name
    [container] = after.document["status"]["containerStatuses"]
    assert container["allocatedResources"]["cpu"] == "1500m"
    assert container["restartCount"] == 0
    assert outlook(cluster).get("pods", []) == []


@grouped
def test_headroom_is_kept_for_a_buffer(cluster: Cluster) -> None:
    template = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "spare"},
        "template": deployment("x", 1, cpu="1500m")["spec"]["template"],
    }
    buffer = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare"},
        "spec": {"podTemplateRef": {"name": "spare"}, "replicas": 2},
    }
    cluster.apply(template, buffer)
    cluster.clock.advance(60)
    assert len(cluster.nodes()) == 2
    told = cluster.get("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "spare")
    assert told["status"]["replicas"] == 2
    [condition] = told["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("ReadyForProvisioning", "True")
    cluster.clock.advance(minutes=20)
    assert len(cluster.nodes()) == 2
    with pytest.raises(ApiError, match="podTemplateRef or scalableRef"):
        cluster.apply({**buffer, "metadata": {"name": "bad"}, "spec": {"replicas": 1}})
    cluster.delete("spare", kind="CapacityBuffer", api_version="autoscaling.x-k8s.io/v1beta1")
    cluster.clock.advance(minutes=13)
    assert cluster.nodes() == []
