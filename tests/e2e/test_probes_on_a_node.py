"""A rollout of pods with every kind of probe, on a real node: each has to pass, and one that fails holds it up."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from support.services import free_port
from support.up import IMAGE, Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
SERVING = b"\x08\x01"


@pytest.fixture
def healthy() -> Iterator[int]:
    """The port of a server that speaks gRPC's health protocol and is well; a pod shares its node's network."""

    def check(request: bytes, context: grpc.ServicerContext) -> bytes:
        return SERVING

    server = grpc.server(ThreadPoolExecutor(1))
    handlers: dict[str, Any] = {"Check": grpc.unary_unary_rpc_method_handler(check)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", handlers),))
    port = server.add_insecure_port("0.0.0.0:0")
    server.start()
    yield port
    server.stop(None).wait()


def deployment(ready: str, port: int, health: int) -> dict[str, Any]:
    """It is ready when the page `ready` is there; its server listens on `port`."""
    often = {"periodSeconds": 1, "timeoutSeconds": 5}
    script = f"mkdir /w; echo ok >/w/good; touch /tmp/up; exec httpd -f -p {port} -h /w"
    web = {
        "name": "web",
        "image": IMAGE,
        "command": ["sh", "-c", script],
        "startupProbe": {"exec": {"command": ["test", "-e", "/tmp/up"]}, **often, "failureThreshold": 30},
        "readinessProbe": {"httpGet": {"path": f"/{ready}", "port": port}, **often},
        "livenessProbe": {"tcpSocket": {"port": port}, **often},
    }
    beside = {
        "name": "beside",
        "image": IMAGE,
        "command": ["sleep", "3600"],
        "readinessProbe": {"grpc": {"port": health}, **often},
    }
    template = {
        "metadata": {"labels": {"app": "probed"}},
        "spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [web, beside]},
    }
    spec = {"selector": {"matchLabels": {"app": "probed"}}, "template": template}
    meta = {"name": "probed"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def test_a_rollout_waits_for_every_probe(cluster: Up, healthy: int) -> None:
    cluster.apply(deployment("good", free_port(), healthy))
    cluster.ok("rollout", "status", "deployment/probed", "--timeout=60s", timeout=70)
    cluster.apply(deployment("absent", free_port(), healthy))
    held = cluster.kubectl("rollout", "status", "deployment/probed", "--timeout=6s")
    assert held.code == 1
    assert "timed out" in held.err
    found = cluster.ok(
        "get", "deployment", "probed", "-o", "jsonpath={.status.availableReplicas} {.status.unavailableReplicas}"
    )
    assert found == "1 1", "the one before serves on"
    cluster.ok("rollout", "undo", "deployment/probed")
    cluster.ok("rollout", "status", "deployment/probed", "--timeout=60s", timeout=70)
    restarts = cluster.ok(
        "get", "pods", "-l", "app=probed", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}"
    )
    assert set(restarts.split()) == {"0"}
    cluster.ok("delete", "deployment", "probed")
    cluster.ok("wait", "--for=delete", "pod", "-l", "app=probed", "--timeout=30s")
