"""Proxies to pods of a real node, by the steps of upstream's specs that ask pods through the API server."""

import json
from typing import Any

import pytest

from support.eventually import eventually
from support.services import free_port
from support.up import IMAGE, Up, manifest, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
NS = "/api/v1/namespaces/default"
COUNTING = r"""
mkdir -p /www/cgi-bin
echo 0 > /received
hostname > /www/index.html
printf '#!/bin/sh\nread n < /received\necho $((n+1)) > /received\n' > /www/cgi-bin/write
printf '#!/bin/sh\n' > /www/cgi-bin/read
for program in write read; do
  printf 'printf "Content-Type: text/plain\\n\\n"\ncat /received\n' >> /www/cgi-bin/$program
done
chmod +x /www/cgi-bin/*
exec httpd -f -p $PORT -h /www
"""


def serving(port: int) -> dict[str, Any]:
    """A container that counts what is written to it, and tells it."""
    return {
        "name": "server",
        "image": IMAGE,
        "command": ["sh", "-c", COUNTING],
        "env": [{"name": "PORT", "value": str(port)}],
        "ports": [{"containerPort": port}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
    }


def test_prestop_should_call_prestop_when_killing_a_pod(cluster: Up) -> None:
    port = free_port()
    cluster.apply(manifest("server", serving(port)))
    server = cluster.pod_when("server", running, "runs")
    hook = ["wget", "-q", "-O-", "--post-data", "prestop", f"http://{server['status']['podIP']}:{port}/cgi-bin/write"]
    tester = {"name": "tester", "image": IMAGE, "lifecycle": {"preStop": {"exec": {"command": hook}}}}
    cluster.apply(manifest("tester", tester, terminationGracePeriodSeconds=30))
    cluster.pod_when("tester", running, "runs")
    read = f"{NS}/pods/server:{port}/proxy/cgi-bin/read"
    assert cluster.ok("get", "--raw", read).strip() == "0"
    cluster.ok("delete", "pod/tester")
    assert cluster.ok("get", "--raw", read).strip() == "1"
    cluster.ok("delete", "pod/server", "--now")


def test_replicaset_should_serve_a_basic_image_on_each_replica_with_a_public_image(cluster: Up) -> None:
    """Pods share their node's network, so each replica listens on a port of its own, which its environment says."""
    port = free_port()
    labels = {"app": "basic"}
    pods = {"terminationGracePeriodSeconds": 1, "containers": [serving(port)]}
    template = {"metadata": {"labels": labels}, "spec": pods}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    cluster.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "basic"}, "spec": spec})
    (pod,) = eventually(
        lambda: json.loads(cluster.ok("get", "pods", "-l", "app=basic", "-o", "json"))["items"],
        lambda pods: len(pods) == 1 and running(pods[0]),
        within=30,
        what="the replica runs",
        told=cluster.log,
    )
    name = pod["metadata"]["name"]
    assert cluster.ok("get", "--raw", f"{NS}/pods/{name}/proxy/").strip()
    service = {"selector": labels, "ports": [{"port": 80, "targetPort": port}]}
    cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "basic"}, "spec": service})
    path = f"{NS}/services/basic:80/proxy/cgi-bin/read"
    answer = eventually(
        lambda: cluster.kubectl("get", "--raw", path), lambda got: got.code == 0, within=15, what="the service answers"
    )
    assert answer.out.strip() == "0"
    cluster.ok("create", "--raw", f"{NS}/services/basic:80/proxy/cgi-bin/write", "-f", "-", stdin="x")
    assert cluster.ok("get", "--raw", path).strip() == "1"
    cluster.ok("delete", "replicaset/basic", "service/basic", "--cascade=foreground", "--now")
