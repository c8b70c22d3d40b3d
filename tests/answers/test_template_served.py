"""--also-template on podfit's own API server, whose Deployment controller must see no reason for a rollout."""

from typing import Any

import pytest

from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.cli.app import run
from podfit.testing.cluster import Cluster

LABELS = {"app": "web"}
CONTAINER: dict[str, Any] = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
    },
}


def requested(cluster: Cluster) -> tuple[str, list[str]]:
    """CPU of the Deployment's template, and of those of its replica sets."""
    deployment = cluster.get("apps/v1", "Deployment", "web")
    cpu = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    sets = cluster.run(cluster.client.list(ReplicaSet, "default")).items
    return str(cpu), [
        str(replica_set.spec.template.spec.containers[0].resources.requests["cpu"]) for replica_set in sets
    ]


def test_a_deployment_at_rest_and_its_replica_set_get_the_sizes_and_give_them_back(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.apply(DEPLOYMENT)
    (before,) = cluster.pods()
    resize = ["resize", "deployment/web", "--also-template", "--kubeconfig", str(cluster.kubeconfig)]
    for options, cpu, actual in ((["--cpu", "700m"], "700m", 0.7), (["--undo"], "500m", 0.5)):
        assert run([*resize, *options]) == 0
        assert "done: no rollout" in capsys.readouterr().out
        cluster.settle()
        assert requested(cluster) == (cpu, [cpu])
        assert not cluster.get("apps/v1", "Deployment", "web")["spec"].get("paused")
        (pod,) = cluster.pods()
        assert (pod.name, pod.restarts, pod.actual.cpu) == (before.name, 0, actual)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_pods_stay_by_their_labels(cluster: Cluster, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """No annotation asks the controllers for anything: they take a relabelled pod for updated, as upstream's do."""
    spec = {key: value for key, value in DEPLOYMENT["spec"].items() if kind != "DaemonSet" or key != "replicas"}
    spec |= {"serviceName": "s", "replicas": 3} if kind == "StatefulSet" else {}
    cluster.apply(DEPLOYMENT | {"kind": kind, "spec": spec})
    cluster.clock.advance(10)
    before, strategy = cluster.pods(), cluster.get("apps/v1", kind, "web")["spec"]["updateStrategy"]
    resize = ["resize", f"{kind.lower()}/web", "--also-template", "--kubeconfig", str(cluster.kubeconfig)]
    for options, cpu in ((["--cpu", "700m"], 0.7), (["--undo"], 0.5)):
        assert run([*resize, *options]) == 0
        count = "3 pods stay" if kind == "StatefulSet" else "1 pod stays"
        assert f"done: no rollout: {count}" in capsys.readouterr().out
        cluster.clock.advance(60)
        found = cluster.get("apps/v1", kind, "web")
        assert found["spec"]["updateStrategy"] == strategy
        assert "podfit.dev/update-strategy" not in found["metadata"].get("annotations", {})
        after = cluster.pods()
        assert [view.pod.metadata.uid for view in after] == [view.pod.metadata.uid for view in before]
        assert [(pod.restarts, pod.actual.cpu) for pod in after] == [(0, cpu)] * len(before)
        status = found["status"]
        updated = status["updatedReplicas"] if kind == "StatefulSet" else status["updatedNumberScheduled"]
        assert updated == len(before)
        assert status.get("currentRevision") == status.get("updateRevision")
