"""The real kubectl on workloads, against the API server alone: without controllers, what it wrote is all there is."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from support.eventually import PATIENCE
from support.up import KEPT_AS_WRITTEN, Up

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-workloads")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster without nodes, where nobody acts on workloads."""
    up = Up(tmp_path_factory.mktemp("workloads"))
    up.start(*KEPT_AS_WRITTEN, node="none")
    yield up
    assert up.down().code == 0


def deployment(name: str, image: str = "i:1", replicas: int = 2) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def image_of(server: Up, name: str) -> str:
    image: str = server.get("deployment", name)["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def test_apply_diff_edit_and_replace(server: Up) -> None:
    body = deployment("web")
    assert "deployment.apps/web created" in server.ok("apply", "-f", "-", stdin=json.dumps(body))
    assert "unchanged" in server.ok("apply", "-f", "-", stdin=json.dumps(body))
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    differs = server.kubectl("diff", "-f", "-", stdin=json.dumps(body))
    assert (differs.code, "+      - image: i:2" in differs.out) == (1, True)
    server.ok("apply", "-f", "-", stdin=json.dumps(body))
    assert (image_of(server, "web"), server.get("deployment", "web")["metadata"]["generation"]) == ("i:2", 2)
    edited = subprocess.run(
        server.kubectl_command("edit", "deployment", "web"),
        env={**os.environ, "EDITOR": "sed -i s/i:2/i:3/"},
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
    )
    assert edited.returncode == 0, edited.stderr
    assert image_of(server, "web") == "i:3"
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "i:4"
    server.ok("replace", "-f", "-", stdin=json.dumps(body))
    assert image_of(server, "web") == "i:4"
    body["spec"]["selector"]["matchLabels"] = {"app": "other"}
    refused = server.kubectl("replace", "-f", "-", stdin=json.dumps(body))
    assert "field is immutable" in refused.err


def test_scale_set_label_patch_and_rollout(server: Up) -> None:
    server.apply(deployment("api"))
    server.ok("scale", "deployment/api", "--replicas=5", "--current-replicas=2")
    server.ok("set", "image", "deployment/api", "c=i:9")
    server.ok("set", "resources", "deployment/api", "-c=c", "--limits=cpu=200m,memory=64Mi")
    server.ok("set", "env", "deployment/api", "A=1")
    server.ok("label", "deployment/api", "tier=back")
    server.ok("annotate", "deployment/api", "note=x")
    server.ok("patch", "deployment/api", "-p", '{"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}')
    server.ok("rollout", "pause", "deployment/api")
    assert "api" in server.ok("rollout", "history", "deployment/api")
    found = server.get("deployment", "api")
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert (found["spec"]["replicas"], found["spec"]["strategy"], found["spec"]["paused"]) == (
        5,
        {"type": "Recreate"},
        True,
    )
    assert container["resources"]["limits"] == {"cpu": "200m", "memory": "64Mi"}
    assert (container["image"], container["env"]) == ("i:9", [{"name": "A", "value": "1"}])
    assert found["metadata"]["labels"]["tier"] == "back"
    assert "Replicas:" in server.ok("describe", "deployment", "api")
    seen = server.ok("get", "deployment", "api", "--subresource=scale")
    assert [line.split()[:3] for line in seen.splitlines()] == [["NAME", "DESIRED", "AVAILABLE"], ["api", "5", "0"]]


def test_every_generator(server: Up) -> None:
    server.ok("create", "deployment", "made", "--image=i", "--replicas=3")
    server.ok("create", "job", "once", "--image=i", "--", "true")
    server.ok("create", "cronjob", "often", "--image=i", "--schedule=*/5 * * * *", "--", "true")
    server.ok("create", "job", "now", "--from=cronjob/often")
    server.ok("create", "poddisruptionbudget", "kept", "--selector=app=made", "--min-available=1")
    server.ok("autoscale", "deployment", "made", "--min=2", "--max=4", "--cpu-percent=70")
    named = server.ok("get", "deploy,cj,pdb,hpa", "-o", "name").split()
    assert {"deployment.apps/made", "cronjob.batch/often", "poddisruptionbudget.policy/kept"} < {*named}
    wide = server.ok("get", "job", "once", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert "cpu: <unknown>/70%" in server.ok("get", "hpa", "made")
    assert "cpu" in server.ok("get", "hpa.v2.autoscaling", "made", "-o", "yaml")
    for kind, name in (("job", "once"), ("cronjob", "often"), ("pdb", "kept"), ("hpa", "made")):
        assert name in server.ok("describe", kind, name)
    refused = server.kubectl("create", "cronjob", "bad", "--image=i", "--schedule=61 * * * *")
    assert "end of range (61) above maximum (59): 61" in refused.err


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("deployment", "maxSurge"),
        ("statefulset", "volumeClaimTemplates"),
        ("daemonset", "updateStrategy"),
        ("replicaset", "minReadySeconds"),
        ("job", "podFailurePolicy"),
        ("cronjob", "jobTemplate"),
        ("hpa", "stabilizationWindowSeconds"),
        ("pdb", "unhealthyPodEvictionPolicy"),
        ("rc", "template"),
    ],
)
def test_explain(server: Up, kind: str, field: str) -> None:
    assert field in [line.split()[0] for line in server.ok("explain", kind, "--recursive").splitlines() if line.strip()]


def test_drain_asks_the_budgets(server: Up) -> None:
    server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    for name in ("one", "two"):
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
        meta = {"name": name, "labels": {"app": "guarded"}}
        server.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        server.ok("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    server.ok("create", "pdb", "guard", "--selector=app=guarded", "--min-available=1")
    allowed = {"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}}
    server.ok("patch", "pdb", "guard", "--subresource=status", "--type=merge", "-p", json.dumps(allowed))
    drain = ("drain", "n1", "--force", "--grace-period=0", "--timeout=6s")
    half = server.kubectl(*drain)
    assert half.code != 0
    assert "Cannot evict pod as it would violate the pod's disruption budget." in half.err
    assert len(server.ok("get", "pods", "-l", "app=guarded", "-o", "name").split()) == 1
    assert server.get("node", "n1")["spec"]["unschedulable"]
    server.ok("delete", "pdb", "guard")
    assert "node/n1 drained" in server.ok(*drain)
    assert not server.ok("get", "pods", "-l", "app=guarded", "-o", "name")


def test_a_watch_shows_each_change(server: Up) -> None:
    server.apply(deployment("seen"))
    watching = subprocess.Popen(
        server.kubectl_command("get", "deployment", "seen", "-w"), stdout=subprocess.PIPE, text=True
    )
    try:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[0] == "NAME"
        assert watching.stdout.readline().split()[:2] == ["seen", "0/2"]
        server.ok("scale", "deployment/seen", "--replicas=7")
        assert watching.stdout.readline().split()[:2] == ["seen", "0/7"]
    finally:
        watching.kill()
        watching.communicate()
