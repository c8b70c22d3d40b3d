"""kubectl's everyday commands for workloads, against `podfit up` with a simulated node: what it makes runs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.up import Up

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-rollouts")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("rollouts"))
    up.start("--nodes", "2", node="simulated")
    yield up
    assert up.down().code == 0


def images(cluster: Up, label: str) -> list[str]:
    pods = json.loads(cluster.ok("get", "pods", "-l", label, "-o", "json"))["items"]
    return [pod["spec"]["containers"][0]["image"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def manifest(kind: str, name: str, **spec: Any) -> str:
    labels = {"app": name}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i:1"}]}
    whole = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}, **spec}
    return json.dumps({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole})


@pytest.mark.timeout(180)
def test_a_deployment_rolls_pauses_scales_and_goes_back(cluster: Up) -> None:
    created = cluster.kubectl("create", "deployment", "web", "--image=i:1", "--replicas=3")
    assert (created.code, created.out, created.err) == (0, "deployment.apps/web created\n", "")
    assert "successfully rolled out" in cluster.ok("rollout", "status", "deployment/web", "--timeout=60s")
    assert images(cluster, "app=web") == ["i:1"] * 3
    cluster.ok("set", "image", "deployment/web", "*=i:2")
    cluster.ok("rollout", "status", "deployment/web", "--timeout=60s")
    assert images(cluster, "app=web") == ["i:2"] * 3
    cluster.ok("rollout", "undo", "deployment/web")
    cluster.ok("rollout", "status", "deployment/web", "--timeout=60s")
    assert images(cluster, "app=web") == ["i:1"] * 3
    history = cluster.ok("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines() if line[:1].isdigit()] == ["2", "3"]
    cluster.ok("rollout", "pause", "deployment/web")
    cluster.ok("set", "image", "deployment/web", "*=i:3")
    cluster.ok("scale", "deployment/web", "--replicas=5")
    cluster.ok("wait", "--for=jsonpath={.status.readyReplicas}=5", "deployment/web", "--timeout=60s")
    assert images(cluster, "app=web") == ["i:1"] * 5
    cluster.ok("rollout", "resume", "deployment/web")
    cluster.ok("rollout", "status", "deployment/web", "--timeout=60s")
    assert images(cluster, "app=web") == ["i:3"] * 5
    cluster.ok("rollout", "restart", "deployment/web")
    assert "successfully rolled out" in cluster.ok("rollout", "status", "deployment/web", "--timeout=60s")
    cluster.ok("expose", "deployment/web", "--port=80")
    slices = json.loads(cluster.ok("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "json"))
    assert sum(len(item["endpoints"] or ()) for item in slices["items"]) == 5
    cluster.ok("delete", "deployment/web", "--timeout=60s", "--cascade=foreground")
    assert json.loads(cluster.ok("get", "pods,replicasets", "-l", "app=web", "-o", "json"))["items"] == []


@pytest.mark.timeout(180)
def test_stateful_and_daemon_sets_roll_and_go_back(cluster: Up) -> None:
    cluster.ok("apply", "-f", "-", stdin=manifest("StatefulSet", "db", replicas=3, serviceName="db"))
    cluster.ok("apply", "-f", "-", stdin=manifest("DaemonSet", "agent"))
    for name, label in (("statefulset/db", "app=db"), ("daemonset/agent", "app=agent")):
        cluster.ok("rollout", "status", name, "--timeout=60s")
        count = len(images(cluster, label))
        cluster.ok("set", "image", name, "c=i:2")
        cluster.ok("rollout", "status", name, "--timeout=60s")
        assert images(cluster, label) == ["i:2"] * count
        cluster.ok("rollout", "undo", name)
        cluster.ok("rollout", "status", name, "--timeout=60s")
        assert images(cluster, label) == ["i:1"] * count
    names = cluster.ok("get", "pods", "-l", "app=db", "-o", "name").split()
    assert names == ["pod/db-0", "pod/db-1", "pod/db-2"]
    assert len(images(cluster, "app=agent")) == 2


@pytest.mark.timeout(120)
def test_a_drained_node_is_left_by_all_but_daemons(cluster: Up) -> None:
    cluster.ok("create", "deployment", "shop", "--image=i:1", "--replicas=4")
    cluster.ok("rollout", "status", "deployment/shop", "--timeout=60s")
    cluster.ok("drain", "simulated-1", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")
    cluster.ok("rollout", "status", "deployment/shop", "--timeout=60s")
    pods = json.loads(cluster.ok("get", "pods", "-l", "app=shop", "-o", "json"))["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"simulated-2"}
    cluster.ok("uncordon", "simulated-1")
