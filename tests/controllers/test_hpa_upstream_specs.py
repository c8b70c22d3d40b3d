"""What upstream's own HPA specs (`[sig-autoscaling] [Feature:HPA]`, Kubernetes 1.36) do, step by step, on simulated
nodes whose containers use what a spec's ResourceConsumer would; the two of external metrics bring an adapter of their
own. All 34 are here, each case named after its spec.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podfit.testing.cluster import Cluster
from support.demand import Demand, average, hpa, utilization, workload
from support.external_metrics import ExternalMetrics, serve

Document = dict[str, Any]
LONG = 15
"""Minutes that a spec waits for a number of replicas."""
REACTION = 100 + 50
"""Seconds that upstream allows for metrics, a pass and pods, and for its consumer's own delays."""
STASIS = 10


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """An HPA from `first` replicas on: usage of all of `begin`, until there are `then`; usage of `burst`, until there
    are `last`. CPU in millicores, memory in MiB, of all pods; `request` is a pod's, `target` in percent of it."""

    kind: str = "Deployment"
    resource: str = "cpu"
    request: int = 500
    target: int = 20
    value: bool = False
    container: bool = False
    pod_level: bool = False
    first: int = 1
    begin: int = 250
    then: int = 3
    burst: int = 700
    last: int = 5
    most: int = 5
    stable: bool = False


UP = Steps()
DOWN = Steps(target=30, first=5, begin=325, burst=10, last=1)
MEMORY = Steps(resource="memory")
TITLE_UP = "Should scale from 1 pod to 3 pods and then from 3 pods to 5 pods"
TITLE_DOWN = "Should scale from 5 pods to 3 pods and then from 3 pods to 1 pod"
SPECS = {
    f"CPU Deployment (Pod Resource) {TITLE_UP} using Average Utilization for aggregation": UP,
    f"CPU Deployment (Pod Resource) {TITLE_UP} using Average Value for aggregation": replace(UP, value=True),
    f"CPU Deployment (Pod Resource) {TITLE_DOWN} using Average Utilization for aggregation": DOWN,
    f"CPU Deployment (Container Resource) {TITLE_UP} using Average Utilization for aggregation": replace(
        UP, container=True
    ),
    f"CPU Deployment (Container Resource) {TITLE_UP} using Average Value for aggregation": replace(
        UP, container=True, value=True
    ),
    f"CPU Deployment (Pod-level Resources Resource Metric) {TITLE_UP} using Average Utilization": replace(
        UP, pod_level=True
    ),
    f"CPU Deployment (Pod-level Resources ContainerResource Metric) {TITLE_UP} using Average Utilization": replace(
        UP, pod_level=True, container=True
    ),
    f"CPU ReplicaSet {TITLE_UP}": replace(UP, kind="ReplicaSet"),
    f"CPU ReplicaSet {TITLE_UP} and verify decision stability": replace(UP, kind="ReplicaSet", stable=True),
    f"CPU ReplicaSet {TITLE_DOWN}": replace(DOWN, kind="ReplicaSet"),
    f"CPU ReplicaSet {TITLE_DOWN} and verify decision stability": replace(DOWN, kind="ReplicaSet", stable=True),
    "CPU ReplicaSet light Should scale from 1 pod to 2 pods": Steps(
        kind="ReplicaSet", request=200, target=50, begin=150, then=2, burst=0, last=0, most=2
    ),
    "CPU ReplicaSet light Should scale from 2 pods to 1 pod": Steps(
        kind="ReplicaSet", request=200, target=50, first=2, begin=50, then=1, burst=0, last=0, most=2
    ),
    f"Memory Deployment (Pod Resource) {TITLE_UP} using Average Utilization for aggregation": MEMORY,
    f"Memory Deployment (Pod Resource) {TITLE_UP} using Average Value for aggregation": replace(MEMORY, value=True),
    f"Memory Deployment (Container Resource) {TITLE_UP} using Average Utilization for aggregation": replace(
        MEMORY, container=True
    ),
    f"Memory Deployment (Container Resource) {TITLE_UP} using Average Value for aggregation": replace(
        MEMORY, container=True, value=True
    ),
}


def of(resource: str, amount: int) -> dict[str, str]:
    return {resource: f"{amount}m" if resource == "cpu" else f"{amount}Mi"}


def container(name: str, requests: dict[str, str]) -> Document:
    return {"name": name, "image": "app:1", "resources": {"requests": requests}}


def target(steps: Steps) -> Document:
    name = "app" if steps.container else ""
    if steps.value:
        return average(of(steps.resource, steps.request * steps.target // 100)[steps.resource], steps.resource, name)
    return utilization(steps.target, steps.resource, name)


@pytest.mark.parametrize("steps", SPECS.values(), ids=SPECS)
def test_replicas_follow_usage(cluster: Cluster, steps: Steps) -> None:
    requests = of(steps.resource, steps.request)
    pod = {"resources": {"requests": requests}} if steps.pod_level else {}
    app = container("app", requests)
    cluster.apply(workload(steps.kind, "web", steps.first, app, **pod), hpa(target(steps), kind=steps.kind))
    demand = Demand(cluster)
    use(demand, steps, steps.begin)
    demand.comes_to(steps.then, minutes=LONG)
    if steps.stable:
        demand.stays(minutes=STASIS)
    if steps.last:
        use(demand, steps, steps.burst)
        demand.comes_to(steps.last, minutes=LONG)


def use(demand: Demand, steps: Steps, amount: int) -> None:
    if steps.resource == "cpu":
        demand.milli = amount
    else:
        demand.mebibytes = amount


IDLE, BUSY = container("app", of("cpu", 500)), container("sidecar", of("cpu", 250))


def test_cpu_replica_set_with_idle_sidecar_scales_on_a_busy_application(cluster: Cluster) -> None:
    """`ReplicaSet with idle sidecar (ContainerResource use case) Should scale from 1 pod to 3 pods and then from 3 pods
    to 5 pods on a busy application with an idle sidecar container`."""
    cluster.apply(
        workload("ReplicaSet", "web", 1, IDLE, BUSY), hpa(utilization(20, container="app"), kind="ReplicaSet")
    )
    demand = Demand(cluster, container="app")
    demand.milli = 125
    demand.comes_to(2, minutes=LONG)
    demand.milli = 250
    demand.comes_to(3, minutes=LONG)
    demand.milli = 700
    demand.comes_to(5, minutes=LONG)


def test_cpu_replica_set_with_busy_sidecar_does_not_scale(cluster: Cluster) -> None:
    """`ReplicaSet with idle sidecar (ContainerResource use case) Should not scale up on a busy sidecar with an idle
    application`."""
    cluster.apply(
        workload("ReplicaSet", "web", 1, IDLE, BUSY), hpa(utilization(20, container="app"), kind="ReplicaSet")
    )
    demand = Demand(cluster, container="sidecar")
    demand.milli = 250
    demand.comes_to(1)
    demand.stays(minutes=STASIS)


DEFINITION: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "consumers.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "consumers", "singular": "consumer", "kind": "Consumer"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                            "status": {
                                "type": "object",
                                "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
                            },
                        },
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
            }
        ],
    },
}


def test_cpu_custom_resource_definition_should_scale_with_a_crd_target_ref(cluster: Cluster) -> None:
    """As the spec's own controller does, the test has a Deployment follow the custom object's scale."""
    custom = {"apiVersion": "example.com/v1", "kind": "Consumer", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
    app = container("app", of("cpu", 500))
    cluster.apply(
        DEFINITION,
        workload("Deployment", "web", 1, app),
        custom,
        hpa(utilization(20), kind="Consumer", version="example.com/v1"),
    )
    demand = Demand(cluster)
    demand.milli = 250

    def followed(wanted: int) -> Callable[[], bool]:
        def look() -> bool:
            replicas = cluster.get("example.com/v1", "Consumer", "web")["spec"]["replicas"]
            path = "/apis/example.com/v1/namespaces/default/consumers/web/status"
            told = {"status": {"replicas": replicas, "selector": "app=web"}}
            merge = "application/merge-patch+json"
            cluster.run(cluster.client.request("PATCH", path, msgspec.json.encode(told), content_type=merge))
            cluster.apply(workload("Deployment", "web", replicas, app))
            return demand.ready() == wanted

        return look

    demand.until(followed(3), minutes=LONG)
    demand.milli = 700
    demand.until(followed(5), minutes=LONG)


def usage(replicas: int) -> float:
    """For which so many replicas are the answer: half a replica less, at 25 % of 500m."""
    return (replicas - 0.5) * 125


def behaved(cluster: Cluster, replicas: int, most: int = 10, least: int = 1, **behavior: Document) -> Demand:
    """A Deployment at rest at so many replicas, under an HPA with this behaviour."""
    spec: Document = {"minReplicas": least}
    if behavior:
        spec["behavior"] = behavior
    app = container("app", of("cpu", 500))
    cluster.apply(workload("Deployment", "web", replicas, app), hpa(utilization(25), most=most, **spec))
    demand = Demand(cluster)
    demand.milli = usage(replicas)
    demand.comes_to(replicas)
    demand.look()
    return demand


def window(minutes: int) -> Document:
    return {"stabilizationWindowSeconds": 60 * minutes}


def policy(kind: str, value: int, minutes: int = 1) -> Document:
    rate = {"type": kind, "value": value, "periodSeconds": 60 * minutes}
    return {"stabilizationWindowSeconds": 0, "policies": [rate]}


NOT_AT_ALL: Document = {"selectPolicy": "Disabled"}


def comes_after(demand: Demand, replicas: int, minutes: int) -> None:
    """Not before so many minutes have passed, and soon after."""
    took = demand.comes_to(replicas, minutes=LONG)
    assert 60 * minutes < took < 60 * minutes + REACTION, demand.course


def test_with_short_downscale_stabilization_window_should_scale_down_soon_after_it(cluster: Cluster) -> None:
    demand = behaved(cluster, 1, most=5, scaleUp=window(0), scaleDown=window(1))
    demand.milli = usage(3)
    demand.comes_to(3, minutes=REACTION / 60)
    demand.milli = usage(2)
    comes_after(demand, 2, 1)


def test_with_long_upscale_stabilization_window_should_scale_up_only_after_it(cluster: Cluster) -> None:
    demand = behaved(cluster, 2, scaleUp=window(3), scaleDown=window(0))
    demand.milli = usage(1)
    demand.comes_to(1, minutes=REACTION / 60)
    demand.milli = usage(3)
    comes_after(demand, 3, 3)


def test_with_autoscaling_disabled_should_not_scale_up(cluster: Cluster) -> None:
    demand = behaved(cluster, 1, scaleUp=NOT_AT_ALL)
    demand.milli = usage(8)
    demand.stays(minutes=4)


def test_with_autoscaling_disabled_should_not_scale_down(cluster: Cluster) -> None:
    demand = behaved(cluster, 3, scaleDown=NOT_AT_ALL)
    demand.milli = usage(1)
    demand.stays(minutes=8)


RATES = {
    "number of Pods rate should scale up no more than given number of Pods per minute": (1, 3, [2, 3], "Pods", 1),
    "number of Pods rate should scale down no more than given number of Pods per minute": (3, 1, [2, 1], "Pods", 1),
    "percentage should scale up no more than given percentage of current Pods per minute": (
        2,
        8,
        [3, 5],
        "Percent",
        50,
    ),
    "percentage should scale down no more than given percentage of current Pods per minute": (
        7,
        1,
        [5, 3],
        "Percent",
        25,
    ),
}


@pytest.mark.parametrize(("first", "wanted", "stops", "kind", "value"), RATES.values(), ids=RATES)
def test_with_scale_limited_by(
    cluster: Cluster, first: int, wanted: int, stops: list[int], kind: str, value: int
) -> None:
    """The first step comes at once, the second a window later."""
    rate = policy(kind, value)
    demand = behaved(cluster, first, scaleUp=rate) if wanted > first else behaved(cluster, first, scaleDown=rate)
    demand.milli = usage(wanted)
    demand.comes_to(stops[0], minutes=(60 + REACTION) / 60)
    took = demand.comes_to(stops[1], minutes=(60 + REACTION) / 60)
    assert took >= 60, demand.course


def test_with_both_controls_keeps_within_the_range_over_two_stabilization_windows(cluster: Cluster) -> None:
    demand = behaved(cluster, 1, most=5, scaleUp=window(3), scaleDown=window(3))
    demand.milli = usage(3)
    demand.stays(minutes=3)
    demand.comes_to(3, minutes=(120 + REACTION) / 60)
    demand.milli = usage(2)
    demand.stays(minutes=3)
    demand.comes_to(2, minutes=(120 + REACTION) / 60)


def test_with_both_controls_keeps_within_the_range_with_stabilization_window_and_pod_limit_rate(
    cluster: Cluster,
) -> None:
    demand = behaved(cluster, 2, most=5, least=2, scaleUp=policy("Pods", 1, 2), scaleDown=window(3))
    demand.milli = usage(4)
    demand.until(lambda: demand.ready() > 2, minutes=REACTION / 60)
    assert demand.ready() == 3
    comes_after(demand, 4, 1)
    demand.milli = usage(2)
    demand.stays(minutes=3)
    demand.comes_to(2, minutes=(120 + REACTION) / 60)


def test_with_large_configurable_tolerance_should_not_scale(cluster: Cluster) -> None:
    """A usage of 5/4 of the target is within a tolerance of half of it."""
    wide = {"tolerance": "0.5"}
    demand = behaved(cluster, 2, scaleUp=wide, scaleDown=wide)
    demand.milli = 2 * 125 * 1.25
    demand.stays(minutes=8)


def test_with_small_up_and_large_down_tolerances_should_scale_up_but_not_down(cluster: Cluster) -> None:
    demand = behaved(cluster, 2, scaleUp={"tolerance": "0.05"}, scaleDown={"tolerance": "0.9"})
    demand.milli = 2 * 125 * 1.07
    demand.comes_to(3, minutes=REACTION / 60)
    demand.milli = usage(1)
    demand.stays(minutes=8)


QUEUE = "queue_messages_ready"
ON_QUEUE: Document = {
    "type": "External",
    "external": {"metric": {"name": QUEUE}, "target": {"type": "Value", "value": "50"}},
}


@pytest.fixture
def queue(cluster: Cluster) -> ExternalMetrics:
    """A hundred messages in a queue, which an adapter behind an APIService tells."""
    metrics = ExternalMetrics(**{QUEUE: 100})
    serve(cluster, metrics)
    return metrics


def test_external_metrics_should_scale_up_and_down_based_on_external_metric_value(
    cluster: Cluster, queue: ExternalMetrics
) -> None:
    cluster.apply(workload(), hpa(ON_QUEUE, most=3, behavior={"scaleUp": window(0), "scaleDown": window(0)}))
    demand = Demand(cluster)
    demand.comes_to(3, minutes=(60 + REACTION) / 60)
    queue.values[QUEUE] = 0
    demand.comes_to(1, minutes=(60 + REACTION) / 60)


@pytest.mark.podfit(feature_gates={"HPAScaleToZero": True})
def test_scale_to_zero_should_scale_down_to_zero_and_back_up_based_on_external_metric_value(
    cluster: Cluster, queue: ExternalMetrics
) -> None:
    cluster.apply(workload(), hpa(ON_QUEUE, most=3, minReplicas=0, behavior={"scaleDown": window(0)}))
    queue.values[QUEUE] = 0
    demand = Demand(cluster)
    demand.comes_to(1, minutes=1)
    demand.comes_to(0, minutes=(60 + REACTION) / 60)
    told = cluster.get("autoscaling/v2", "HorizontalPodAutoscaler", "web")["status"]["conditions"]
    assert [said["status"] for said in told if said["type"] == "ScaledToZero"] == ["True"]
    queue.values[QUEUE] = 200
    demand.comes_to(3, minutes=(60 + REACTION) / 60)
