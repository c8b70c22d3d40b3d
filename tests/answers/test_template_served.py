"""--also-template on podfit's own API server, which has Deployments and nobody who acts on them."""

import json
from typing import Any

import pytest

from podfit.cli.app import run
from podfit.testing.cluster import Cluster

APPS = "apps/v1"
LABELS = {"app": "web"}
HASHED = LABELS | {"pod-template-hash": "abc"}
ALSO = ["deployment/web", "--also-template"]


def template(labels: dict[str, str]) -> dict[str, Any]:
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container]}}


def add(cluster: Cluster, kind: str, name: str, labels: dict[str, str], owner: str = "", **spec: Any) -> None:
    meta: dict[str, Any] = {"name": name, "labels": labels}
    if owner:
        above, _, its = owner.partition("/")
        uid = cluster.get(APPS, above, its)["metadata"]["uid"]
        meta["ownerReferences"] = [{"apiVersion": APPS, "kind": above, "name": its, "uid": uid, "controller": True}]
    cluster.apply({"apiVersion": "v1" if kind == "Pod" else APPS, "kind": kind, "metadata": meta, "spec": spec})


@pytest.fixture
def shop(cluster: Cluster) -> Cluster:
    """What a Deployment's controller would have made, made by hand."""
    for kind, name, labels, owner in (
        ("Deployment", "web", LABELS, ""),
        ("ReplicaSet", "web-abc", HASHED, "Deployment/web"),
    ):
        add(cluster, kind, name, labels, owner, replicas=1, selector={"matchLabels": labels}, template=template(labels))
    add(cluster, "Pod", "web-abc-1", HASHED, "ReplicaSet/web-abc", **template(HASHED)["spec"])
    return cluster


def say(cluster: Cluster, **status: int) -> None:
    """What the controller would write into the Deployment's status."""
    cluster._runner.run(
        cluster.client.request(
            "PATCH",
            f"/apis/{APPS}/namespaces/default/deployments/web/status",
            json.dumps({"status": status}).encode(),
            content_type="application/merge-patch+json",
        )
    )


def cpu(cluster: Cluster, kind: str, name: str) -> str:
    found = cluster.get(APPS, kind, name)["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return str(found)


def test_without_a_controller_the_template_is_left_and_it_is_said_why(
    shop: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ["--kubeconfig", str(shop.kubeconfig)]
    assert run(["resize", *ALSO, "--cpu", "700m", "--allow-disruption", *there]) == 1
    told = capsys.readouterr()
    assert "no controller has seen this Deployment yet, so none would follow its template" in told.err
    assert "nothing was changed" in told.out
    assert (shop.pod("web-abc-1").actual.cpu, cpu(shop, "Deployment", "web")) == (0.5, "500m")
    assert run(["resize", "deployment/web", "--cpu", "700m", *there]) == 0, "the pods alone can be resized"
    shop.settle()
    assert shop.pod("web-abc-1").actual.cpu == 0.7


def test_a_deployment_at_rest_and_its_replica_set_get_the_sizes_and_give_them_back(
    shop: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ["--kubeconfig", str(shop.kubeconfig)]
    say(shop, observedGeneration=1, replicas=1, updatedReplicas=1)
    assert run(["resize", *ALSO, "--cpu", "700m", *there]) == 0
    assert "template  deployment/web  cpu 500m → 700m  done: no rollout" in capsys.readouterr().out
    assert cpu(shop, "Deployment", "web") == cpu(shop, "ReplicaSet", "web-abc") == "700m"
    deployment = shop.get(APPS, "Deployment", "web")
    assert not deployment["spec"].get("paused")
    assert run(["resize", *ALSO, "--undo", *there]) == 1, "nobody has seen the change yet"
    assert f"seen generation 1 of {deployment['metadata']['generation']}" in capsys.readouterr().err
    say(shop, observedGeneration=deployment["metadata"]["generation"])
    assert run(["resize", *ALSO, "--undo", *there]) == 0
    shop.settle()
    assert cpu(shop, "Deployment", "web") == cpu(shop, "ReplicaSet", "web-abc") == "500m"
    assert shop.pod("web-abc-1").actual.cpu == 0.5
