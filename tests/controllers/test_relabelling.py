"""The controller in-place-rollout beside controllers that act as upstream's: pods are resized, and none is replaced
that can be; who changes more than sizes, or takes the hold away, gets what the workload's own strategy says.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import MERGE_PATCH
from podfit.decide.workload.in_place import standing
from podfit.decide.workload.in_place.hold import HELD
from podfit.process.controllers_options import ControllersOptions
from podfit.testing.cluster import Cluster

KINDS = (Deployment, StatefulSet, DaemonSet)
LABELS = {"app": "x"}
IN_PLACE = {"podfit.dev/rollout": "in-place"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(
        Path(tmp_path_factory.mktemp("relabelled")),
        nodes=[{"cpu": "6", "memory": "8Gi"}, {"cpu": "2", "memory": "8Gi"}],
        controllers=("*", "in-place-rollout"),
    )
    yield made
    made.close()


@pytest.fixture
def n(whole: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:60].strip("-")
    whole.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    whole.delete(name, kind="Namespace", namespace="")
    whole.clock.advance(40)


def workload(kind: type[Any], replicas: int = 4, **container: Any) -> dict[str, Any]:
    sized = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [sized | container]}
    spec: dict[str, Any] = {"selector": {"matchLabels": LABELS}}
    spec |= {} if kind is DaemonSet else {"replicas": replicas}
    spec |= {"serviceName": "s"} if kind is StatefulSet else {}
    spec["template"] = {"metadata": {"labels": LABELS}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind.__name__,
        "metadata": {"name": "w", "annotations": IN_PLACE},
        "spec": spec,
    }


def change(cluster: Cluster, kind: type[Any], n: str, **container: Any) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", **container}]}}}}
    cluster.run(cluster.client.patch(kind, "w", n, patch))


def sized(cpu: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}}


def pods(cluster: Cluster, n: str) -> list[Pod]:
    return [view.pod for view in cluster.pods(n) if not view.pod.metadata.deletion_timestamp]


def uids(cluster: Cluster, n: str) -> set[str]:
    return {pod.metadata.uid for pod in pods(cluster, n)}


def cpus(cluster: Cluster, n: str) -> set[str]:
    return {str(pod.spec.containers[0].resources.requests["cpu"]) for pod in pods(cluster, n)}


def owner(cluster: Cluster, kind: type[Any], n: str) -> Any:
    return cluster.run(cluster.client.get(kind, "w", n))


def done(cluster: Cluster, kind: type[Any], n: str) -> bool:
    """By its status all pods are of the present template."""
    status = owner(cluster, kind, n).status
    if kind is DaemonSet:
        return bool(status.updated_number_scheduled == status.desired_number_scheduled > 0)
    return bool(status.updated_replicas == status.replicas > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_pods_are_resized_and_count_as_updated(whole: Cluster, n: str, kind: type[Any]) -> None:
    whole.apply(workload(kind), namespace=n)
    whole.clock.advance(10)
    before = uids(whole, n)
    assert standing.is_mine(owner(whole, kind, n))
    for cpu in ("200m", "100m", "150m"):
        change(whole, kind, n, **sized(cpu))
        whole.clock.advance(5)
        assert (uids(whole, n), cpus(whole, n), done(whole, kind, n)) == (before, {cpu}, True)
    if kind is Deployment:
        assert len(whole.run(whole.client.list(ReplicaSet, n)).items) == 1
    if kind is StatefulSet:
        status = owner(whole, kind, n).status
        assert status.current_revision == status.update_revision, "so a new pod is of it"
    assert [event.reason for event in whole.events("w", namespace=n)].count("RolloutHeld") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_image_is_left_to_the_controller_and_then_held_again(whole: Cluster, n: str, kind: type[Any]) -> None:
    whole.apply(workload(kind), namespace=n)
    whole.clock.advance(10)
    before = uids(whole, n)
    change(whole, kind, n, image="other", **sized("200m"))
    whole.clock.advance(60)
    assert not before & uids(whole, n)
    assert (cpus(whole, n), done(whole, kind, n)) == ({"200m"}, True)
    assert standing.is_mine(owner(whole, kind, n))
    assert standing.LEFT not in owner(whole, kind, n).metadata.annotations
    assert any("differs in more than resources" in event.message for event in whole.events("w", namespace=n))
    after = uids(whole, n)
    change(whole, kind, n, **sized("300m"))
    whole.clock.advance(5)
    assert (uids(whole, n), cpus(whole, n)) == (after, {"300m"})


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_annotation_the_hold_ends_and_the_strategy_is_what_it_was(
    whole: Cluster, n: str, kind: type[Any]
) -> None:
    made = workload(kind)
    if kind is not Deployment:
        rolling = {"partition": 1} if kind is StatefulSet else {"maxUnavailable": 2}
        made["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    del made["metadata"]["annotations"]
    whole.apply(made, namespace=n)
    whole.clock.advance(10)
    plain = owner(whole, kind, n).spec

    def annotate(value: str | None) -> None:
        patch = {"metadata": {"annotations": {"podfit.dev/rollout": value}}}
        whole.run(whole.client.patch(Namespace, n, "", patch, content_type=MERGE_PATCH))
        whole.clock.advance(2)

    annotate("in-place")
    assert owner(whole, kind, n).spec != plain
    annotate(None)
    assert owner(whole, kind, n).spec == plain
    assert HELD not in owner(whole, kind, n).metadata.annotations


@pytest.mark.parametrize("kind", KINDS)
def test_who_takes_the_hold_away_finds_it_back_with_what_was_written(whole: Cluster, n: str, kind: type[Any]) -> None:
    """As a GitOps tool does that writes the strategy again."""
    whole.apply(workload(kind), namespace=n)
    whole.clock.advance(10)
    before = uids(whole, n)
    spec: dict[str, Any] = {"paused": None}
    if kind is not Deployment:
        rolling = {"partition": 2} if kind is StatefulSet else {"maxUnavailable": "50%"}
        spec = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    whole.run(whole.client.patch(kind, "w", n, {"spec": spec}))
    whole.clock.advance(2)
    assert standing.is_mine(owner(whole, kind, n))
    if kind is not Deployment:
        was = standing.unheld(owner(whole, kind, n)).spec.update_strategy.rolling_update
        assert (was.partition == 2) if kind is StatefulSet else (str(was.max_unavailable) == "50%")
    change(whole, kind, n, **sized("200m"))
    whole.clock.advance(5)
    assert uids(whole, n) == before
    assert cpus(whole, n) == ({"200m", "100m"} if kind is StatefulSet else {"200m"}), "pods below a partition stay"


@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
def test_a_pod_that_cannot_be_resized_alone_is_replaced(whole: Cluster, n: str, kind: type[Any]) -> None:
    made = workload(kind, 2)
    prefer = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": LABELS}}
    made["spec"]["template"]["spec"]["affinity"] = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": prefer}]
        }
    }
    whole.apply(made, namespace=n)
    whole.clock.advance(10)
    by_node = {pod.spec.node_name: pod.metadata.uid for pod in pods(whole, n)}
    assert len(by_node) == 2
    change(whole, kind, n, **sized("2500m"))
    whole.clock.advance(120)
    assert (cpus(whole, n), done(whole, kind, n)) == ({"2500m"}, True)
    assert uids(whole, n) & set(by_node.values()) == {by_node["simulated-1"]}, "the one on the large node stays"
    assert standing.is_mine(owner(whole, kind, n))
    assert standing.TO_REPLACE not in owner(whole, kind, n).metadata.annotations


def test_who_pauses_a_deployment_or_asks_for_on_delete_is_left_alone(whole: Cluster, n: str) -> None:
    for kind, spec in ((Deployment, {"paused": True}), (StatefulSet, {"updateStrategy": {"type": "OnDelete"}})):
        made = workload(kind, 1)
        made["spec"] |= spec
        whole.apply(made, namespace=n)
        whole.clock.advance(3)
        change(whole, kind, n, **sized("200m"))
        whole.clock.advance(3)
        assert HELD not in owner(whole, kind, n).metadata.annotations
        assert "200m" not in cpus(whole, n)


def test_the_controller_runs_where_it_is_named_alone() -> None:
    name = "in-place-rollout"
    assert not ControllersOptions().runs(name)
    assert ControllersOptions(controllers=("*", name)).runs(name)
    assert ControllersOptions(controllers=(name,)).foreign
    assert not ControllersOptions(controllers=("*", name)).foreign
