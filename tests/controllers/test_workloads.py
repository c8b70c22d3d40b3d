"""Workloads in a whole cluster on the test's clock: what upstream documents of them, step by step."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import MERGE_PATCH
from podfit.testing.cluster import Cluster
from podfit.testing.views import PodView


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(Path(tmp_path_factory.mktemp("workloads")), nodes=2)
    yield made
    made.close()


@pytest.fixture
def cluster(whole: Cluster, request: pytest.FixtureRequest) -> Cluster:
    """With the namespace `n` and a number to itself."""
    whole.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space(request.node.name)}})
    return whole


def space(test: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", test.lower())[:60].strip("-")


@pytest.fixture
def n(request: pytest.FixtureRequest) -> str:
    return space(request.node.name)


def manifest(kind: str, replicas: int, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": spec.pop("cpu", "10m")}}}]
    pod = {"terminationGracePeriodSeconds": 1, "containers": containers}
    labels = {"app": "x"}
    whole = {"replicas": replicas, "selector": {"matchLabels": labels}}
    whole["template"] = {"metadata": {"labels": labels}, "spec": pod}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": whole | spec}


def test_pods_that_their_node_rejects_are_made_ever_more_slowly(cluster: Cluster, n: str) -> None:
    """Upstream makes a new one at once, for ever."""
    rejected = manifest("ReplicaSet", 1)
    (node, *_) = cluster.run(cluster.client.list(Node)).items
    rejected["spec"]["template"]["spec"] |= {"nodeName": node.metadata.name, "nodeSelector": {"no": "such"}}
    cluster.apply(rejected, namespace=n)
    cluster.clock.advance(120)
    assert 5 < len(cluster.pods(n)) < 15


def change(cluster: Cluster, kind: type[Any], n: str, spec: dict[str, Any]) -> None:
    cluster.run(cluster.client.patch(kind, "w", n, {"spec": spec}, content_type=MERGE_PATCH))
    cluster.settle()


def staying(cluster: Cluster, n: str) -> list[PodView]:
    return [pod for pod in cluster.pods(n) if not pod.pod.metadata.deletion_timestamp]


def conditions(cluster: Cluster, kind: type[Any], n: str) -> dict[str, tuple[str, str]]:
    status = cluster.run(cluster.client.get(kind, "w", n)).status
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


def test_a_quota_stops_a_replica_set_which_goes_on_when_there_is_room(cluster: Cluster, n: str) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    cluster.apply(quota, manifest("ReplicaSet", 5), namespace=n)
    assert len(cluster.pods(n)) == 2
    assert conditions(cluster, ReplicaSet, n) == {"ReplicaFailure": ("True", "FailedCreate")}
    cluster.run(cluster.client.patch(ResourceQuota, "q", n, {"spec": {"hard": {"pods": "9"}}}))
    cluster.clock.advance(120)
    assert len(cluster.pods(n)) == 5
    assert conditions(cluster, ReplicaSet, n) == {}


def test_a_rollout_that_gets_nowhere_says_so_and_can_be_taken_back(cluster: Cluster, n: str) -> None:
    cluster.apply(manifest("Deployment", 2, progressDeadlineSeconds=60), namespace=n)
    cluster.clock.advance(5)
    assert conditions(cluster, Deployment, n)["Progressing"] == ("True", "NewReplicaSetAvailable")
    before = cluster.get("apps/v1", "Deployment", "w", n)["spec"]["template"]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1000"}}}
    change(cluster, Deployment, n, {"template": {"spec": {"containers": [container]}}})
    cluster.clock.advance(50)
    assert conditions(cluster, Deployment, n)["Progressing"][1] == "ReplicaSetUpdated"
    cluster.clock.advance(20)
    assert conditions(cluster, Deployment, n)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert conditions(cluster, Deployment, n)["Available"][0] == "True"
    change(cluster, Deployment, n, {"template": before})
    cluster.clock.advance(5)
    assert conditions(cluster, Deployment, n)["Progressing"] == ("True", "NewReplicaSetAvailable")
    assert len(staying(cluster, n)) == 2


def test_recreate_ends_all_before_it_makes_any(cluster: Cluster, n: str) -> None:
    cluster.apply(manifest("Deployment", 3, strategy={"type": "Recreate"}), namespace=n)
    cluster.clock.advance(5)
    change(cluster, Deployment, n, {"template": {"metadata": {"annotations": {"v": "2"}}}})
    for _ in range(40):
        running = [pod.pod.metadata.labels["pod-template-hash"] for pod in cluster.pods(n) if pod.phase == "Running"]
        assert len(set(running)) <= 1
        cluster.clock.advance(0.25)
    assert [view.pod.metadata.annotations.get("v") for view in staying(cluster, n)] == ["2"] * 3


def test_what_is_deleted_is_made_again_and_never_doubled(cluster: Cluster, n: str) -> None:
    cluster.apply(manifest("Deployment", 4), namespace=n)
    cluster.clock.advance(3)
    for _ in range(3):
        for pod in staying(cluster, n)[:2]:
            cluster.run(cluster.client.delete(Pod, pod.name, n))
        cluster.settle()
        assert len(staying(cluster, n)) == 4
        cluster.clock.advance(3)
    assert len(cluster.pods(n)) == 4


def test_a_relabelled_pod_is_let_go_and_replaced_and_taken_back(cluster: Cluster, n: str) -> None:
    cluster.apply(manifest("ReplicaSet", 2), namespace=n)
    name = cluster.pods(n)[0].name
    cluster.run(cluster.client.patch(Pod, name, n, {"metadata": {"labels": {"app": "other"}}}))
    cluster.settle()
    assert len(cluster.pods(n)) == 3
    assert not cluster.pod(name, n).pod.metadata.owner_references
    cluster.run(cluster.client.patch(Pod, name, n, {"metadata": {"labels": {"app": "x"}}}))
    cluster.clock.advance(5)
    assert len(cluster.pods(n)) == 2


@pytest.mark.parametrize(("scaled", "left"), [("Retain", 3), ("Delete", 1)])
def test_claims_stay_or_go_with_pods(cluster: Cluster, n: str, scaled: str, left: int) -> None:
    access = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": access}
    policy = {"whenScaled": scaled, "whenDeleted": "Retain"}
    more = {"podManagementPolicy": "Parallel", "persistentVolumeClaimRetentionPolicy": policy}
    cluster.apply(manifest("StatefulSet", 3, serviceName="s", volumeClaimTemplates=[claim], **more), namespace=n)
    cluster.clock.advance(5)
    assert len(cluster.run(cluster.client.list(PersistentVolumeClaim, n)).items) == 3
    change(cluster, StatefulSet, n, {"replicas": 1})
    cluster.clock.advance(60)
    assert [pod.name for pod in cluster.pods(n)] == ["w-0"]
    assert len(cluster.run(cluster.client.list(PersistentVolumeClaim, n)).items) == left


def test_a_paused_deployment_only_scales(cluster: Cluster, n: str) -> None:
    cluster.apply(manifest("Deployment", 2), namespace=n)
    change(cluster, Deployment, n, {"paused": True})
    assert conditions(cluster, Deployment, n)["Progressing"] == ("Unknown", "DeploymentPaused")
    change(cluster, Deployment, n, {"template": {"metadata": {"annotations": {"v": "2"}}}, "replicas": 3})
    cluster.clock.advance(5)
    assert [view.pod.metadata.annotations.get("v") for view in staying(cluster, n)] == [None] * 3
    change(cluster, Deployment, n, {"paused": False})
    cluster.clock.advance(10)
    assert [view.pod.metadata.annotations.get("v") for view in staying(cluster, n)] == ["2"] * 3


def test_history_keeps_as_many_revisions_as_asked_for(cluster: Cluster, n: str) -> None:
    cluster.apply(manifest("Deployment", 1, revisionHistoryLimit=1), namespace=n)
    for version in ("2", "3", "4"):
        change(cluster, Deployment, n, {"template": {"metadata": {"annotations": {"v": version}}}})
        cluster.clock.advance(5)
    found = cluster.run(cluster.client.list(ReplicaSet, n)).items
    revisions = {replica_set.metadata.annotations["deployment.kubernetes.io/revision"] for replica_set in found}
    assert revisions == {"3", "4"}
