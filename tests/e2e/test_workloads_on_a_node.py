"""Ordinary manifests on the real node: a web application with a service and an agent, rolled out and scaled."""

import json
from typing import Any

import pytest

from support.up import IMAGE, STAY, Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(120)]


def manifest(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    container = {"name": "c", "image": IMAGE, "command": STAY, "readinessProbe": probe}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    whole = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}


def running(up: Up, label: str) -> list[dict[str, Any]]:
    pods = json.loads(up.ok("get", "pods", "-l", label, "-o", "json"))["items"]
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def test_a_web_application_and_an_agent(cluster_dir: Up) -> None:
    up = cluster_dir
    up.start()
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    up.apply(
        manifest("Deployment", "web", replicas=2),
        manifest("DaemonSet", "agent"),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service},
    )
    for name in ("deployment/web", "daemonset/agent"):
        up.ok("rollout", "status", name, "--timeout=60s")
    endpoints = json.loads(up.ok("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "json"))
    assert [endpoint["conditions"]["ready"] for endpoint in endpoints["items"][0]["endpoints"]] == [True, True]
    before = {pod["metadata"]["name"] for pod in running(up, "app=web")}
    up.ok("rollout", "restart", "deployment/web")
    up.ok("rollout", "status", "deployment/web", "--timeout=60s")
    after = {pod["metadata"]["name"] for pod in running(up, "app=web")}
    assert len(after) == 2
    assert not before & after
    up.ok("scale", "deployment/web", "--replicas=1")
    up.ok("wait", "--for=jsonpath={.status.replicas}=1", "deployment/web", "--timeout=60s")
    assert len(running(up, "app=web")) == 1
    assert len(running(up, "app=agent")) == 1
