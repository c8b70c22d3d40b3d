"""Horizontal pod autoscalers in a whole cluster on the test's clock."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.api.apps.v1.deployments import Deployment
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.testing.cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, nodes=2)
    yield made
    made.close()


def deployment(name: str = "web", replicas: int = 1) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": containers},
            },
        },
    }


def autoscaler(target: str = "web", *, name: str = "", **spec: Any) -> dict[str, Any]:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name or target},
        "spec": {"scaleTargetRef": ref, "minReplicas": 1, "maxReplicas": 4} | spec,
    }


def replicas(cluster: Cluster, name: str = "web") -> int | None:
    return cluster.run(cluster.client.get(Deployment, name, "default")).spec.replicas


def conditions(cluster: Cluster, name: str = "web") -> dict[str, tuple[str, str]]:
    status = cluster.run(cluster.client.get(HorizontalPodAutoscaler, name, "default")).status
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


def told(cluster: Cluster, name: str = "web") -> list[str]:
    return [event.message for event in cluster.events(name) if event.reason == "SuccessfulRescale"]


def test_hpa_grows_under_load_and_shrinks_when_the_window_is_over(cluster: Cluster) -> None:
    cluster.apply(deployment(), autoscaler())
    cluster.load("web", cpu=0.1)
    cluster.clock.advance(minutes=3)
    assert replicas(cluster) == 4
    assert len(cluster.pods()) == 4
    assert conditions(cluster)["ScalingActive"] == ("True", "ValidMetricFound")
    assert any("cpu resource utilization (percentage of request) above target" in text for text in told(cluster))
    cluster.load("web", cpu=0.01)
    cluster.clock.advance(minutes=4)
    assert replicas(cluster) == 4
    cluster.clock.advance(minutes=4)
    assert replicas(cluster) == 1
    assert "New size: 1; reason: All metrics below target" in told(cluster)


def test_hpa_does_nothing_for_a_target_that_is_not_there(cluster: Cluster) -> None:
    cluster.apply(deployment(), autoscaler("gone"), autoscaler(name="odd"))
    odd: dict[str, Any] = {"scaleTargetRef": {"apiVersion": "x.example.com/v1", "kind": "Gizmo", "name": "web"}}
    cluster.apply(autoscaler(name="odd", **odd))
    cluster.clock.advance(40)
    status = cluster.run(cluster.client.get(HorizontalPodAutoscaler, "gone", "default")).status
    assert [condition.message.rpartition(": ")[2] for condition in status.conditions] == [
        'deployments.apps "gone" not found'
    ]
    status = cluster.run(cluster.client.get(HorizontalPodAutoscaler, "odd", "default")).status
    assert [condition.message.rpartition(": ")[2] for condition in status.conditions] == [
        'no matches for kind "Gizmo" in group "x.example.com"'
    ]
    assert replicas(cluster) == 1


def test_two_hpas_of_one_target_stop_each_other(cluster: Cluster) -> None:
    cluster.apply(deployment(replicas=2), autoscaler(), autoscaler(name="rival"))
    cluster.clock.advance(minutes=2)
    for name in ("web", "rival"):
        assert conditions(cluster, name)["ScalingActive"] == ("False", "AmbiguousSelector")
    cluster.delete("rival", kind="HorizontalPodAutoscaler", api_version="autoscaling/v2")
    cluster.clock.advance(minutes=2)
    assert conditions(cluster)["ScalingActive"][1] != "AmbiguousSelector"


def test_hpa_without_custom_metrics_api_says_so_and_keeps_the_replicas(cluster: Cluster) -> None:
    metric = {
        "type": "Pods",
        "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": 1}},
    }
    cluster.apply(deployment(replicas=3), autoscaler(metrics=[metric]))
    cluster.clock.advance(minutes=10)
    status = cluster.run(cluster.client.get(HorizontalPodAutoscaler, "web", "default")).status
    (active,) = (condition for condition in status.conditions if condition.type == "ScalingActive")
    assert active.reason == "FailedGetPodsMetric"
    assert "unable to get metric qps: unable to fetch metrics from custom metrics API" in active.message
    assert "the server could not find the requested resource" in active.message
    assert replicas(cluster) == 3


def test_hpa_leaves_a_target_alone_that_somebody_switched_off(cluster: Cluster) -> None:
    cluster.apply(deployment(replicas=0), autoscaler())
    cluster.clock.advance(minutes=1)
    assert replicas(cluster) == 0
    assert conditions(cluster)["ScalingActive"] == ("False", "ScalingDisabled")


def test_hpa_brings_the_replicas_into_its_bounds_without_a_metric(cluster: Cluster) -> None:
    cluster.apply(deployment(replicas=7), autoscaler())
    cluster.clock.advance(16)
    assert replicas(cluster) == 4
    assert told(cluster) == ["New size: 4; reason: Current number of replicas above Spec.MaxReplicas"]


def test_hpa_gets_no_warning_where_its_controller_runs(cluster: Cluster) -> None:
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    answer = cluster.run(cluster.client.send("POST", path, msgspec.json.encode(autoscaler())))
    assert "warning" not in answer.headers
