"""`podfit.dev/scale: vertical-first` in a whole cluster: HPA controller, recommender, updater and kubelets as they run
in `podfit up`, on simulated nodes."""

from typing import Any

import pytest

from podfit.testing.cluster import Cluster
from support.demand import Demand, hpa, workload


def vpa(mode: str = "InPlaceOrRecreate", **policy: Any) -> dict[str, Any]:
    allowed = {"containerName": "*", "controlledResources": ["cpu"], "maxAllowed": {"cpu": "400m"}, **policy}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": mode},
            "resourcePolicy": {"containerPolicies": [allowed]},
        },
    }


def sizes(cluster: Cluster) -> list[int]:
    """Millicores that each pod was allocated."""
    return sorted(round(1000 * pod.allocated.cpu) for pod in cluster.pods())


def told(cluster: Cluster, api: str, kind: str) -> dict[str, tuple[str, str]]:
    """Status and message of conditions by type."""
    conditions = cluster.get(api, kind, "web")["status"].get("conditions", [])
    return {one["type"]: (one["status"], one.get("message", "")) for one in conditions}


def begin(cluster: Cluster, **given: Any) -> Demand:
    cluster.apply(workload(), hpa(mode="vertical-first"), vpa(**given))
    demand = Demand(cluster)
    demand.milli = 20
    demand.comes_to(1)
    return demand


@pytest.mark.podfit(vpa=True)
def test_pods_grow_before_replicas_are_added_and_shrink_after_they_are_gone(cluster: Cluster) -> None:
    """At 50 %: 150m are one pod of 300m; 500m are 1000m, which three pods of 400m have; 100m are one of 200m."""
    demand = begin(cluster)
    demand.milli = 150
    demand.until(lambda: sizes(cluster) == [300], minutes=4)
    assert told(cluster, "autoscaling.k8s.io/v1", "VerticalPodAutoscaler")["podfit.dev/VerticalFirst"][1].startswith(
        "cpu of a pod is 300m, which HorizontalPodAutoscaler web asks for"
    )
    demand.milli = 500
    demand.until(lambda: max(sizes(cluster)) == 400, minutes=4)
    demand.until(lambda: len(sizes(cluster)) == 3, minutes=1)
    assert told(cluster, "autoscaling/v2", "HorizontalPodAutoscaler")["podfit.dev/VerticalFirst"] == (
        "False",
        "cpu: pods stay at 400m, which is all that VerticalPodAutoscaler web allows, so replicas are added",
    )
    demand.comes_to(3)
    assert sizes(cluster) == [400, 400, 400]
    demand.stays(minutes=5)
    demand.milli = 100
    demand.comes_to(1)
    assert sizes(cluster) == [400]
    demand.until(lambda: 200 <= sizes(cluster)[0] < 220, minutes=10)
    demand.stays(minutes=5)
    assert demand.course == [1, 3, 2, 1]
    assert all(pod.restarts == 0 for pod in cluster.pods())


@pytest.mark.podfit(vpa=True, nodes=[{"cpu": "350m"}])
def test_pods_grow_as_far_as_their_node_has_room(cluster: Cluster) -> None:
    """Beside a pod of 200m there are 50m left; then replicas are added, which wait for another node."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "beside"},
        "spec": {"containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "200m"}}}]},
    }
    cluster.apply(pod)
    demand = begin(cluster)
    demand.milli = 200

    def web() -> list[int]:
        return [round(1000 * pod.allocated.cpu) for pod in cluster.pods() if pod.ready and pod.name.startswith("web")]

    demand.until(lambda: web() == [150], minutes=5)
    demand.until(lambda: len(cluster.pods()) > 2, minutes=2)
    assert web() == [150]
    assert told(cluster, "autoscaling/v2", "HorizontalPodAutoscaler")["podfit.dev/VerticalFirst"] == (
        "False",
        "cpu: pods stay at 150m, since their nodes have no room for more, so replicas are added",
    )


@pytest.mark.podfit(vpa=True)
def test_replicas_are_added_where_nobody_resizes(cluster: Cluster) -> None:
    """Replicas wait three minutes for an updater that does not work, and not at all for one that may not."""
    demand = begin(cluster)
    demand.milli = 150
    cluster.apply(vpa("Off"))
    demand.comes_to(3, minutes=3)
    assert sizes(cluster) == [100, 100, 100]
