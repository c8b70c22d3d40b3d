"""Disruption budgets and lost pods on a whole cluster, on its clock."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod, PodSpec, PodStatus
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.policy.v1.types import Eviction, PodDisruptionBudget, PodDisruptionBudgetStatus
from podfit.core.errors import ApiError
from podfit.core.times import parse_time
from podfit.decide.workload.lost_pods import MOST_ENDED, lost
from podfit.decide.workload.stale_disruptions import stale_in
from podfit.testing.cluster import Cluster

SPEC = {"containers": [{"name": "c", "image": "busybox:1.36"}]}
WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": SPEC},
    },
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def budget(**spec: Any) -> dict[str, Any]:
    whole = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": whole}


def status(cluster: Cluster) -> PodDisruptionBudgetStatus:
    return cluster.run(cluster.client.get(PodDisruptionBudget, "b", "default")).status


def numbers(cluster: Cluster) -> tuple[int, int, int, int]:
    found = status(cluster)
    return found.expected_pods, found.desired_healthy, found.current_healthy, found.disruptions_allowed


def evict(cluster: Cluster, pod: Pod) -> None:
    name = pod.metadata.name
    body = Eviction(metadata=ObjectMeta(name=name, namespace="default"))
    path = f"/api/v1/namespaces/default/pods/{name}/eviction"
    cluster.run(cluster.client.request("POST", path, codec.encode(body)))


def pods(cluster: Cluster) -> list[Pod]:
    return list(cluster.run(cluster.client.list(Pod, "default")).items)


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"minAvailable": 2}, (3, 2, 3, 1)),
        ({"minAvailable": 4}, (3, 4, 3, 0)),
        ({"minAvailable": "50%"}, (3, 2, 3, 1)),
        ({"maxUnavailable": 1}, (3, 2, 3, 1)),
        ({"maxUnavailable": "50%"}, (3, 1, 3, 2)),
    ],
)
def test_the_numbers_of_a_budget(cluster: Cluster, spec: dict[str, Any], found: tuple[int, int, int, int]) -> None:
    cluster.apply(WEB, budget(**spec))
    cluster.clock.advance(5)
    assert numbers(cluster) == found
    (condition,) = status(cluster).conditions
    assert (condition.status, condition.reason) == (
        ("True", "SufficientPods") if found[3] else ("False", "InsufficientPods")
    )


def test_an_eviction_takes_the_allowance_until_its_pod_was_replaced(cluster: Cluster) -> None:
    probe = {"exec": {"command": ["true"]}, "initialDelaySeconds": 20}  # without one the next pod is ready at once
    container = {"name": "c", "image": "busybox:1.36", "readinessProbe": probe}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    cluster.apply({**WEB, "spec": {**WEB["spec"], "template": template}}, budget(minAvailable=2))
    cluster.clock.advance(60)
    first, second, _ = pods(cluster)
    evict(cluster, first)
    cluster.settle()
    with pytest.raises(ApiError) as refused:
        evict(cluster, second)
    assert refused.value.code == 429
    cluster.clock.advance(60)
    assert (numbers(cluster), status(cluster).disrupted_pods) == ((3, 2, 3, 1), {})
    evict(cluster, second)


def test_pods_without_a_manager_are_said(cluster: Cluster) -> None:
    meta = {"name": "p", "labels": {"app": "web"}}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": SPEC})
    cluster.apply(budget(maxUnavailable=1))
    cluster.clock.advance(5)
    assert numbers(cluster) == (0, 0, 1, 0)
    events = {event.reason for event in cluster.run(cluster.client.list(Event, "default")).items}
    assert "UnmanagedPods" in events


def test_pods_of_a_node_that_is_gone_fail_and_go(cluster: Cluster) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {**SPEC, "nodeName": "nowhere"}}
    cluster.apply(pod)
    cluster.clock.advance(30)
    assert [pod.metadata.name for pod in pods(cluster)] == ["p"]
    cluster.clock.advance(40)
    assert pods(cluster) == []


def pod(number: int, *, phase: str = "Running", node: str = "n", going: bool = False) -> Pod:
    stamp = "2026-01-01T00:00:00Z"
    meta = ObjectMeta(
        name=f"p{number}", uid=f"u{number}", creation_timestamp=stamp, deletion_timestamp=stamp if going else None
    )
    return Pod(metadata=meta, spec=PodSpec(node_name=node), status=PodStatus(phase=phase))


def test_which_pods_are_lost() -> None:
    there = {"n": Node(metadata=ObjectMeta(name="n"))}
    found = lost([pod(1), pod(2, node="", going=True), pod(3, node="gone"), pod(4, going=True)], there, ["gone"])
    assert [(lost.pod.metadata.name, lost.message) for lost in found] == [
        ("p2", ""),
        ("p3", "PodGC: node no longer exists"),
    ]
    ended = [pod(number, phase="Succeeded") for number in range(MOST_ENDED + 2)]
    assert len(lost(ended, there, [])) == 2


def marked(**more: Any) -> dict[str, Any]:
    return {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", **more}


@pytest.mark.parametrize(
    ("condition", "phase", "going", "left"),
    [
        (marked(lastTransitionTime="2026-01-01T00:00:00Z"), "Running", False, 30.0),
        (marked(lastTransitionTime="2025-12-31T23:00:00Z"), "Running", False, 0.0),
        (marked(), "Pending", False, 0.0),
        (marked(lastTransitionTime="2026-01-01T00:00:00Z"), "Running", True, None),
        (marked(lastTransitionTime="2026-01-01T00:00:00Z"), "Failed", False, None),
        (marked(status="False"), "Running", False, None),
        (marked(reason="TerminationByKubelet"), "Running", False, None),
    ],
)
def test_when_a_mark_is_stale(condition: dict[str, Any], phase: str, going: bool, left: float | None) -> None:
    meta = {"name": "p"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {})
    pod = codec.convert({"metadata": meta, "status": {"phase": phase, "conditions": [condition]}}, Pod)
    assert stale_in(pod, parse_time("2026-01-01T00:01:30Z")) == left


def test_a_pod_that_was_to_go_and_stays_says_so_no_more(cluster: Cluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC})
    cluster.settle()
    when = cluster.run(cluster.client.get(Pod, "p", "default")).metadata.creation_timestamp
    mark = marked(lastTransitionTime=when)
    cluster.run(cluster.client.patch(Pod, "p", "default", {"status": {"conditions": [mark]}}, subresource="status"))

    def told() -> tuple[str, str]:
        pod = cluster.run(cluster.client.get(Pod, "p", "default"))
        return next(
            (condition.status, condition.reason)
            for condition in pod.status.conditions
            if condition.type == "DisruptionTarget"
        )

    cluster.clock.advance(118)
    assert told() == ("True", "PreemptionByScheduler")
    cluster.clock.advance(3)
    assert told() == ("False", "")
