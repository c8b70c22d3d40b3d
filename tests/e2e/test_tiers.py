"""Manifests as users write them, on the real node: a database behind a Service, a set whose pods share a port."""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from support import netexec
from support.eventually import eventually
from support.services import free_port, load
from support.up import IMAGE, Up, manifest, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(240)]
POSTGRESQL = "localhost/postgresql:distribution"
INIT = (
    "initdb --pgdata=/data/pg --username=postgres --auth=trust && echo 'host all all all trust' >> /data/pg/pg_hba.conf"
)
ASKING = """
ask() { psql -tA -h "$DATABASE_SERVICE_HOST" -p "$DATABASE_SERVICE_PORT" -U postgres -c "$1"; }
until ask 'SELECT 1' >/dev/null 2>&1; do :; done
ask 'CREATE TABLE rows (number int)'; ask 'INSERT INTO rows VALUES (1), (2)'; ask 'SELECT count(*) FROM rows'
"""
SERVE = "mkdir -p /www; hostname > /www/index.html; exec httpd -f -p 80 -h /www"


@pytest.mark.images
def test_a_database_behind_a_service_and_a_client_that_knows_its_environment(cluster: Up) -> None:
    """The client is told where by the variables of the Service."""
    load(cluster, "postgresql")
    mount = {"name": "data", "mountPath": "/data"}
    user = {"name": "PGUSER", "value": "postgres"}
    own = {"image": POSTGRESQL, "imagePullPolicy": "Never", "volumeMounts": [mount], "env": [user]}
    server = ["postgres", "-D", "/data/pg", "-k", "/tmp", "-c", "listen_addresses=*"]
    ready = {"exec": {"command": ["pg_isready", "--quiet", "-h", "127.0.0.1"]}, "periodSeconds": 1}
    pod = {
        "securityContext": {"runAsUser": 999, "runAsGroup": 999, "fsGroup": 999},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "initContainers": [{"name": "init", "command": ["sh", "-c", INIT], **own}],
        "containers": [{"name": "server", "command": server, "readinessProbe": ready, **own}],
    }
    cluster.apply(*tier("database", pod, port=5432))
    cluster.ok("rollout", "status", "deployment/database", "--timeout=60s", timeout=70)
    client = {"name": "app", "image": POSTGRESQL, "imagePullPolicy": "Never", "command": ["sh", "-c", ASKING]}
    cluster.apply(manifest("client", client, hostNetwork=False, restartPolicy="Never"))
    try:
        cluster.ok("wait", "pod/client", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", timeout=70)
        assert cluster.ok("logs", "client").split("\n")[:3] == ["CREATE TABLE", "INSERT 0 2", "2"]
    finally:
        cluster.ok("delete", "deployment/database", "service/database", "pod/client", "--now")


def tier(name: str, pod: dict[str, Any], *, port: int, replicas: int = 1) -> list[dict[str, Any]]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    service = {"selector": labels, "ports": [{"port": port}]}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": service},
    ]


def test_port_forward_to_a_service_of_two_replicas_on_one_port(cluster: Up) -> None:
    probe = {"httpGet": {"port": 80}, "periodSeconds": 1}
    container = {"name": "c", "image": IMAGE, "command": ["sh", "-c", SERVE], "readinessProbe": probe}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    cluster.apply(*tier("web", pod, port=80, replicas=2))
    cluster.ok("rollout", "status", "deployment/web", "--timeout=60s", timeout=70)
    port = free_port()
    with subprocess.Popen(cluster.kubectl_command("port-forward", "service/web", f"{port}:80")) as forwarding:
        try:
            asks = partial(netexec.ask, "tcp", "127.0.0.1", port, "/index.html")
            said = eventually(asks, bool, within=15, what="an answer through the forwarded port")
        finally:
            forwarding.terminate()
    assert said.startswith("web-")
    cluster.ok("delete", "deployment/web", "service/web", "--now")


# ---------------------------------------------------------------- StatefulSet Basic StatefulSet functionality


@pytest.fixture
def stateful(cluster: Up) -> Iterator[Up]:
    """`ss`, whose pods all listen on port 80 and are ready when they answer there."""
    probe = {"httpGet": {"port": 80, "path": "/index.html"}, "periodSeconds": 1, "failureThreshold": 1}
    container = {"name": "c", "image": IMAGE, "command": ["sh", "-c", SERVE], "readinessProbe": probe}
    labels = {"app": "ss"}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    spec = {
        "serviceName": "ss",
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    cluster.apply(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "ss", "labels": labels}, "spec": spec}
    )
    yield cluster
    cluster.ok("delete", "statefulset", "-l", "app=ss", "--cascade=foreground", timeout=100)


def ready(up: Up) -> dict[str, bool]:
    """By name, of pods that are not ending."""
    items = json.loads(up.ok("get", "pods", "-l", "app=ss", "-o", "json"))["items"]
    return {item["metadata"]["name"]: running(item) for item in items if "deletionTimestamp" not in item["metadata"]}


def becomes(up: Up, **wanted: bool) -> None:
    named = {name.replace("_", "-"): one for name, one in wanted.items()}
    eventually(lambda: ready(up), lambda seen: seen == named, within=60, what=f"pods are {named}", told=up.log)


def breaks(up: Up, pod: str) -> None:
    up.ok("exec", pod, "--", "mv", "/www/index.html", "/www/gone.html")


def heals(up: Up, pod: str) -> None:
    up.ok("exec", pod, "--", "mv", "/www/gone.html", "/www/index.html")


@pytest.mark.campaign
def test_scaling_should_happen_in_predictable_order_and_halt_if_any_stateful_pod_is_unhealthy(stateful: Up) -> None:
    """Of three pods that all listen on port 80: none is made, and none goes, while the one before it is not ready."""
    becomes(stateful, ss_0=True)
    breaks(stateful, "ss-0")
    becomes(stateful, ss_0=False)
    stateful.ok("scale", "statefulset/ss", "--replicas=3")
    generation = stateful.get("statefulset", "ss")["metadata"]["generation"]
    observed = lambda: stateful.get("statefulset", "ss")["status"]["observedGeneration"]  # noqa: E731
    eventually(observed, lambda seen: seen == generation, within=20, what="the controller has seen it")
    assert ready(stateful) == {"ss-0": False}
    heals(stateful, "ss-0")
    becomes(stateful, ss_0=True, ss_1=True, ss_2=True)
    made = [stateful.get("pod", f"ss-{number}")["metadata"]["creationTimestamp"] for number in range(3)]
    assert made == sorted(made)
    breaks(stateful, "ss-0")
    becomes(stateful, ss_0=False, ss_1=True, ss_2=True)
    stateful.ok("scale", "statefulset/ss", "--replicas=0")
    heals(stateful, "ss-0")
    becomes(stateful)


@pytest.mark.campaign
def test_should_perform_rolling_updates_and_roll_backs_of_template_modifications(stateful: Up) -> None:
    """An update waits for a pod that is not ready, goes on when it is, and goes back to the revision before."""
    stateful.ok("scale", "statefulset/ss", "--replicas=3")
    becomes(stateful, ss_0=True, ss_1=True, ss_2=True)
    first = revisions(stateful)
    assert len(set(first)) == 1
    breaks(stateful, "ss-1")
    becomes(stateful, ss_0=True, ss_1=False, ss_2=True)
    stateful.ok("set", "env", "statefulset/ss", "ROUND=2")
    assert revisions(stateful) == first, "it waits for the one that is not ready"
    heals(stateful, "ss-1")
    stateful.ok("rollout", "status", "statefulset/ss", "--timeout=90s", timeout=100)
    second = revisions(stateful)
    assert len(set(second)) == 1
    assert second != first
    stateful.ok("rollout", "undo", "statefulset/ss")
    stateful.ok("rollout", "status", "statefulset/ss", "--timeout=90s", timeout=100)
    assert revisions(stateful) == first


def revisions(up: Up) -> list[str]:
    items = json.loads(up.ok("get", "pods", "-l", "app=ss", "-o", "json"))["items"]
    return [item["metadata"]["labels"]["controller-revision-hash"] for item in items]


def test_should_list_patch_and_delete_a_collection_of_stateful_sets(stateful: Up) -> None:
    becomes(stateful, ss_0=True)
    listed = json.loads(stateful.ok("get", "statefulsets", "-A", "-l", "app=ss", "-o", "json"))["items"]
    assert [item["metadata"]["name"] for item in listed] == ["ss"]
    patch = {"metadata": {"labels": {"round": "2"}}, "spec": {"replicas": 2}}
    stateful.ok("patch", "statefulset/ss", "--patch", json.dumps(patch))
    becomes(stateful, ss_0=True, ss_1=True)
    stateful.ok("delete", "statefulset", "-l", "round=2", "--wait=false")
    becomes(stateful)
    assert stateful.ok("get", "statefulsets", "-A", "-l", "app=ss", "-o", "name") == ""
