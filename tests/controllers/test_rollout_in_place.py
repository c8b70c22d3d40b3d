"""Rollouts in place in a whole cluster on the test's clock: pods are resized, and become pods of the new template."""

import json
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
from podfit.api.meta.owners import controller_of
from podfit.client.rest import MERGE_PATCH
from podfit.decide.workload.pods import is_ready
from podfit.testing.cluster import Cluster

LABELS = {"app": "x"}
IN_PLACE = {"podfit.dev/rollout": "in-place"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(
        Path(tmp_path_factory.mktemp("rollouts")), nodes=[{"cpu": "6", "memory": "8Gi"}, {"cpu": "2", "memory": "8Gi"}]
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


@pytest.fixture
def cluster(whole: Cluster, n: str) -> Cluster:
    return whole


def workload(kind: str, replicas: int, *, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    sized = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [sized | (container or {})]}
    whole: dict[str, Any] = {"selector": {"matchLabels": LABELS}}
    whole |= {} if kind == "DaemonSet" else {"replicas": replicas}
    whole["template"] = {"metadata": {"labels": LABELS}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w", "annotations": IN_PLACE},
        "spec": whole | spec,
    }


def set_cpu(cluster: Cluster, kind: type[Any], n: str, cpu: str, **resources: Any) -> None:
    """As `kubectl set resources` does."""
    sized = {"requests": {"cpu": cpu}, **resources}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "resources": sized}]}}}}
    cluster.run(cluster.client.patch(kind, "w", n, patch))
    cluster.settle()


def pods(cluster: Cluster, n: str) -> list[Pod]:
    return [view.pod for view in cluster.pods(n) if not view.pod.metadata.deletion_timestamp]


def uids(cluster: Cluster, n: str) -> set[str]:
    return {pod.metadata.uid for pod in pods(cluster, n)}


def cpus(cluster: Cluster, n: str) -> list[str]:
    return [str(pod.spec.containers[0].resources.requests["cpu"]) for pod in pods(cluster, n)]


def restarts(cluster: Cluster, n: str) -> int:
    return sum(status.restart_count for pod in pods(cluster, n) for status in pod.status.container_statuses)


def status(cluster: Cluster, kind: type[Any], n: str) -> Any:
    return cluster.run(cluster.client.get(kind, "w", n)).status


def sets(cluster: Cluster, n: str) -> dict[str, tuple[int, int]]:
    """Of each replica set what it is to have and what it has."""
    found = cluster.run(cluster.client.list(ReplicaSet, n)).items
    return {one.metadata.name: (one.spec.replicas or 0, one.status.replicas) for one in found}


def settled(cluster: Cluster, n: str, size: int) -> None:
    """Nothing is held, the numbers are right, and every pod has one owner, whose template and label it has."""
    found = {one.metadata.name: one for one in cluster.run(cluster.client.list(ReplicaSet, n)).items}
    assert max(sets(cluster, n).values()) == (size, size)
    assert sum(wanted for wanted, _ in sets(cluster, n).values()) == size
    assert not any("podfit.dev/pods-held" in one.metadata.annotations for one in found.values())
    for pod in pods(cluster, n):
        owner = controller_of(pod.metadata)
        assert owner is not None
        assert len(pod.metadata.owner_references) == 1
        digest = found[owner.name].metadata.labels["pod-template-hash"]
        assert pod.metadata.labels["pod-template-hash"] == digest
    told = status(cluster, Deployment, n)
    assert (told.replicas, told.updated_replicas, told.available_replicas) == (size, size, size)


def test_a_deployment_is_resized_and_undone(cluster: Cluster, n: str) -> None:
    cluster.apply(workload("Deployment", 5), namespace=n)
    cluster.clock.advance(3)
    before = uids(cluster, n)
    set_cpu(cluster, Deployment, n, "200m")
    cluster.clock.advance(5)
    assert (uids(cluster, n), cpus(cluster, n), restarts(cluster, n)) == (before, ["200m"] * 5, 0)
    settled(cluster, n, 5)
    assert len(sets(cluster, n)) == 2
    set_cpu(cluster, Deployment, n, "100m")
    cluster.clock.advance(5)
    assert (uids(cluster, n), cpus(cluster, n), restarts(cluster, n)) == (before, ["100m"] * 5, 0)
    settled(cluster, n, 5)
    assert len(sets(cluster, n)) == 2, "the old replica set is the new one again"
    revisions = [
        one.metadata.annotations["deployment.kubernetes.io/revision"]
        for one in cluster.run(cluster.client.list(ReplicaSet, n)).items
    ]
    assert sorted(revisions) == ["2", "3"]


def events(cluster: Cluster, n: str, reason: str) -> list[str]:
    return [event.message for event in cluster.events("w", namespace=n) if event.reason == reason]


def test_a_stateful_set_is_resized_and_undone(cluster: Cluster, n: str) -> None:
    cluster.apply(workload("StatefulSet", 4, serviceName="s"), namespace=n)
    cluster.clock.advance(10)
    before = uids(cluster, n)
    for cpu in ("200m", "100m"):
        set_cpu(cluster, StatefulSet, n, cpu)
        cluster.clock.advance(5)
        assert (uids(cluster, n), cpus(cluster, n), restarts(cluster, n)) == (before, [cpu] * 4, 0)
        told = status(cluster, StatefulSet, n)
        assert (told.replicas, told.updated_replicas, told.ready_replicas, told.current_replicas) == (4, 4, 4, 4)
        assert told.current_revision == told.update_revision


def test_a_partition_and_on_delete_are_respected(cluster: Cluster, n: str) -> None:
    partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    cluster.apply(workload("StatefulSet", 4, serviceName="s", updateStrategy=partition), namespace=n)
    cluster.clock.advance(10)
    set_cpu(cluster, StatefulSet, n, "200m")
    cluster.clock.advance(5)
    assert cpus(cluster, n) == ["100m", "100m", "200m", "200m"]
    told = status(cluster, StatefulSet, n)
    assert (told.updated_replicas, told.current_replicas) == (2, 2)
    strategy = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
    cluster.run(cluster.client.patch(StatefulSet, "w", n, strategy, content_type=MERGE_PATCH))
    set_cpu(cluster, StatefulSet, n, "300m")
    cluster.clock.advance(5)
    assert cpus(cluster, n) == ["100m", "100m", "200m", "200m"]


def test_a_daemon_set_is_resized_and_undone(cluster: Cluster, n: str) -> None:
    cluster.apply(workload("DaemonSet", 0), namespace=n)
    cluster.clock.advance(5)
    before = uids(cluster, n)
    for cpu in ("200m", "100m"):
        set_cpu(cluster, DaemonSet, n, cpu)
        cluster.clock.advance(5)
        assert (uids(cluster, n), cpus(cluster, n), restarts(cluster, n)) == (before, [cpu] * 2, 0)
        told = status(cluster, DaemonSet, n)
        assert (told.updated_number_scheduled, told.number_available, told.desired_number_scheduled) == (2, 2, 2)


def on_nodes(cluster: Cluster, n: str) -> dict[str, str]:
    """UIDs by node, of pods that are one on each."""
    return {pod.spec.node_name: pod.metadata.uid for pod in pods(cluster, n)}


def spread(kind: str, **spec: Any) -> dict[str, Any]:
    """Two pods, which begin on different nodes, the highest ordinal on either."""
    made = workload(kind, 2, **spec)
    prefer = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": LABELS}}
    made["spec"]["template"]["spec"]["affinity"] = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": prefer}]
        }
    }
    return made


@pytest.mark.parametrize("kind", [Deployment, StatefulSet])
def test_a_pod_that_is_too_large_for_its_node_alone_is_replaced(cluster: Cluster, n: str, kind: type[Any]) -> None:
    cluster.apply(spread(kind.__name__, **({"serviceName": "s"} if kind is StatefulSet else {})), namespace=n)
    cluster.clock.advance(5)
    before = on_nodes(cluster, n)
    assert before.keys() == {"simulated-1", "simulated-2"}
    set_cpu(cluster, kind, n, "1900m")
    cluster.clock.advance(5)
    assert on_nodes(cluster, n) == before, "it fits"
    set_cpu(cluster, kind, n, "1")
    cluster.clock.advance(5)
    set_cpu(cluster, kind, n, "2100m")
    cluster.clock.advance(60)
    assert before["simulated-1"] in uids(cluster, n)
    assert before["simulated-2"] not in uids(cluster, n)
    (told,) = events(cluster, n, "ReplacingPod")
    assert "is replaced: the resize was refused" in told
    assert "requested: 2100, allocatable: 2000" in told


def test_a_deferred_pod_is_replaced_after_its_deadline(cluster: Cluster, n: str) -> None:
    made = workload("Deployment", 2)
    made["metadata"]["annotations"] = IN_PLACE | {"podfit.dev/rollout-deadline": "2m"}
    made["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "simulated-1"}
    cluster.apply(made, namespace=n)
    cluster.clock.advance(5)
    before = uids(cluster, n)
    set_cpu(cluster, Deployment, n, "3500m")
    cluster.clock.advance(110)
    assert (uids(cluster, n), cpus(cluster, n)) == (before, ["3500m"] * 2)
    assert status(cluster, Deployment, n).updated_replicas == 1
    cluster.clock.advance(20)
    (told,) = events(cluster, n, "ReplacingPod")
    assert "the resize was deferred for more than 2m0s" in told
    assert status(cluster, Deployment, n).available_replicas == 2, "no room for another, and none may be unavailable"


@pytest.mark.parametrize(("own", "seconds"), [(None, 60), ("2m", 120), ("soon", 300)])
def test_the_namespace_says_the_deadline_of_what_says_none(
    cluster: Cluster, n: str, own: str | None, seconds: int
) -> None:
    """A workload's own counts before it; for one that is no duration the usual 5m is taken."""
    annotations = IN_PLACE | {"podfit.dev/rollout-deadline": "1m"}
    cluster.run(cluster.client.patch(Namespace, n, "", {"metadata": {"annotations": annotations}}))
    made = workload("Deployment", 2)
    made["metadata"]["annotations"] = {"podfit.dev/rollout-deadline": own} if own else {}
    made["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "simulated-1"}
    cluster.apply(made, namespace=n)
    cluster.clock.advance(5)
    set_cpu(cluster, Deployment, n, "3500m")
    cluster.clock.advance(seconds - 10)
    assert events(cluster, n, "ReplacingPod") == []
    cluster.clock.advance(20)
    (told,) = events(cluster, n, "ReplacingPod")
    assert f"the resize was deferred for more than {seconds // 60}m0s" in told


def test_a_pause_holds_it_and_other_templates_roll_as_ever(cluster: Cluster, n: str) -> None:
    cluster.apply(workload("Deployment", 3), namespace=n)
    cluster.clock.advance(3)
    before = uids(cluster, n)
    cluster.run(cluster.client.patch(Deployment, "w", n, {"spec": {"paused": True}}))
    set_cpu(cluster, Deployment, n, "200m")
    cluster.clock.advance(5)
    assert cpus(cluster, n) == ["100m"] * 3
    cluster.run(cluster.client.patch(Deployment, "w", n, {"spec": {"paused": None}}, content_type=MERGE_PATCH))
    cluster.clock.advance(5)
    assert (uids(cluster, n), cpus(cluster, n)) == (before, ["200m"] * 3)
    settled(cluster, n, 3)
    cluster.run(
        cluster.client.patch(Deployment, "w", n, {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
    )
    cluster.clock.advance(20)
    assert not before & uids(cluster, n)
    settled(cluster, n, 3)


@pytest.mark.parametrize("kind", [Deployment, StatefulSet, DaemonSet])
def test_applying_the_same_again_changes_nothing(cluster: Cluster, n: str, kind: type[Any]) -> None:
    """As a GitOps tool does: in the midst of a rollout, and again and again after it."""
    more: dict[str, Any] = {"serviceName": "s"} if kind is StatefulSet else {}
    made = workload(kind.__name__, 3, **more)
    cluster.apply(made, namespace=n)
    cluster.clock.advance(6)
    uid = uids(cluster, n)
    size = len(uid)
    made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "200m"
    for _ in range(4):
        cluster.apply(made, namespace=n)
        cluster.clock.advance(0.3)
    cluster.clock.advance(5)
    assert (uids(cluster, n), cpus(cluster, n), restarts(cluster, n)) == (uid, ["200m"] * size, 0)
    owner = cluster.run(cluster.client.get(kind, "w", n))
    before = [pod.metadata.resource_version for pod in pods(cluster, n)], owner.metadata
    for _ in range(3):
        cluster.apply(made, namespace=n)
        cluster.clock.advance(5)
    after = cluster.run(cluster.client.get(kind, "w", n)).metadata
    assert ([pod.metadata.resource_version for pod in pods(cluster, n)], after) == before
    if kind is Deployment:
        settled(cluster, n, 3)
        assert len(sets(cluster, n)) == 2


def test_a_namespace_asks_for_all_and_a_workload_may_refuse(cluster: Cluster, n: str) -> None:
    cluster.run(cluster.client.patch(Namespace, n, "", {"metadata": {"annotations": IN_PLACE}}))
    for name, annotations in (("w", {}), ("other", {"podfit.dev/rollout": "replace"})):
        made = workload("Deployment", 1)
        made["metadata"] = {"name": name, "annotations": annotations}
        for labels in (made["spec"]["selector"]["matchLabels"], made["spec"]["template"]["metadata"]["labels"]):
            labels["app"] = name
        cluster.apply(json.loads(json.dumps(made)), namespace=n)
    cluster.clock.advance(3)
    before = {pod.metadata.labels["app"]: pod.metadata.uid for pod in pods(cluster, n)}
    for name in before:
        sized = {"name": "c", "resources": {"requests": {"cpu": "200m"}}}
        patch = {"spec": {"template": {"spec": {"containers": [sized]}}}}
        cluster.run(cluster.client.patch(Deployment, name, n, patch))
    cluster.clock.advance(10)
    after = {pod.metadata.labels["app"]: pod.metadata.uid for pod in pods(cluster, n)}
    assert (after["w"] == before["w"], after["other"] == before["other"]) == (True, False)


RESTARTING = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}


@pytest.mark.parametrize(("kind", "bound"), [("Deployment", 2), ("StatefulSet", 1), ("DaemonSet", 1)])
def test_restarts_keep_within_what_may_be_unavailable(cluster: Cluster, n: str, kind: str, bound: int) -> None:
    more: dict[str, Any] = {"serviceName": "s"} if kind == "StatefulSet" else {}
    if kind == "Deployment":
        more["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": bound}}
    probed = RESTARTING | {"readinessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 3, "periodSeconds": 1}}
    cluster.apply(workload(kind, 6, container=probed, **more), namespace=n)
    cluster.clock.advance(60)
    before, size = uids(cluster, n), len(pods(cluster, n))
    set_cpu(cluster, {"Deployment": Deployment, "StatefulSet": StatefulSet, "DaemonSet": DaemonSet}[kind], n, "200m")
    least = size
    for _ in range(120):
        cluster.clock.advance(0.5)
        least = min(least, sum(map(is_ready, pods(cluster, n))))
    assert least == size - bound
    assert (uids(cluster, n), cpus(cluster, n), restarts(cluster, n)) == (before, ["200m"] * size, size)


def test_where_none_may_be_unavailable_a_pod_that_would_restart_is_replaced(cluster: Cluster, n: str) -> None:
    cluster.apply(workload("Deployment", 2, container=RESTARTING), namespace=n)
    cluster.clock.advance(5)
    before = uids(cluster, n)
    set_cpu(cluster, Deployment, n, "200m")
    for _ in range(40):
        cluster.clock.advance(0.5)
        assert sum(map(is_ready, pods(cluster, n))) >= 2
    assert not uids(cluster, n) & before
    settled(cluster, n, 2)


def test_a_pod_of_a_limit_range_gets_what_a_new_one_would(cluster: Cluster, n: str) -> None:
    defaults = {"type": "Container", "default": {"cpu": "500m"}}
    cluster.apply(workload("Deployment", 1, container={"resources": {"limits": {"cpu": "200m"}}}), namespace=n)
    cluster.clock.advance(3)
    before = uids(cluster, n)
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [defaults]}}
    cluster.apply(limits, namespace=n)
    patch = [
        {"op": "replace", "path": "/spec/template/spec/containers/0/resources", "value": {"requests": {"cpu": "300m"}}}
    ]
    cluster.run(cluster.client.patch(Deployment, "w", n, patch, content_type="application/json-patch+json"))
    cluster.clock.advance(5)
    (pod,) = pods(cluster, n)
    resources = pod.spec.containers[0].resources
    assert (uids(cluster, n), str(resources.requests["cpu"]), str(resources.limits["cpu"])) == (before, "300m", "500m")


def test_a_change_of_size_in_the_midst_of_it(cluster: Cluster, n: str) -> None:
    cluster.apply(workload("Deployment", 4), namespace=n)
    cluster.clock.advance(3)
    for size, cpu in ((7, "200m"), (3, "150m"), (5, "100m")):
        set_cpu(cluster, Deployment, n, cpu)
        cluster.run(cluster.client.patch(Deployment, "w", n, {"spec": {"replicas": size}}))
        cluster.clock.advance(20)
        assert cpus(cluster, n) == [cpu] * size
        settled(cluster, n, size)


def test_a_size_that_a_vpa_gave_is_not_undone(tmp_path: Path) -> None:
    made = Cluster(tmp_path, vpa=True)
    try:
        made.apply(workload("Deployment", 2))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}
        spec: dict[str, Any] = {"targetRef": target, "updatePolicy": {"updateMode": "InPlaceOrRecreate"}}
        spec["resourcePolicy"] = {"containerPolicies": [{"containerName": "c", "controlledResources": ["cpu"]}]}
        vpa = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "v"}}
        made.apply(vpa | {"spec": spec})
        made.load("w", cpu=0.8)
        made.clock.advance(minutes=2)
        for pod in pods(made, "default"):
            made.delete(pod.metadata.name)
        made.clock.advance(5)
        before, sized = uids(made, "default"), cpus(made, "default")
        assert "100m" not in sized
        sizes = {"cpu": "150m", "memory": "96Mi"}
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": sizes}}]}}}}
        made.run(made.client.patch(Deployment, "w", "default", patch))
        made.clock.advance(10)
        settled(made, "default", 2)
        memory = [str(pod.spec.containers[0].resources.requests["memory"]) for pod in pods(made, "default")]
        assert (uids(made, "default"), memory) == (before, ["96Mi"] * 2)
        assert not {"100m", "150m"} & set(cpus(made, "default")), "the VPA's, not the template's"
    finally:
        made.close()
