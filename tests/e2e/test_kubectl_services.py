"""The real kubectl with services: it makes, exposes, shows, changes and deletes them."""

import json
from collections.abc import Iterator

import pytest

from support.up import Up

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-apply")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster without nodes."""
    up = Up(tmp_path_factory.mktemp("services"))
    up.start(node="none")
    yield up
    assert up.down().code == 0


def test_services_by_hand(server: Up) -> None:
    for made in (
        ("clusterip", "web", "--tcp=80:8080"),
        ("nodeport", "np", "--tcp=80:8080"),
        ("clusterip", "hl", "--clusterip=None"),
        ("externalname", "en", "--external-name=a.example.com"),
    ):
        server.ok("create", "service", *made)
    rows = [line.split() for line in server.ok("get", "services", "--no-headers").splitlines()]
    assert {row[0]: row[1] for row in rows} == {
        "en": "ExternalName",
        "hl": "ClusterIP",
        "kubernetes": "ClusterIP",
        "np": "NodePort",
        "web": "ClusterIP",
    }
    assert server.get("service", "hl")["spec"]["clusterIP"] == "None"
    described = server.ok("describe", "service", "np")
    assert ["NodePort:", "80-8080", str(server.get("service", "np")["spec"]["ports"][0]["nodePort"]) + "/TCP"] in [
        line.split() for line in described.splitlines()
    ]
    server.ok("patch", "service", "web", "--patch", '{"spec":{"type":"NodePort"}}')
    assert server.get("service", "web")["spec"]["ports"][0]["nodePort"] >= 30000
    server.ok("delete", "service", "np", "hl", "en")


def test_a_pod_is_exposed(server: Up) -> None:
    server.ok("run", "p", "--image=i", "--port=80", "--labels=app=p")
    server.ok("expose", "pod", "p", "--name=exposed")
    spec = server.get("service", "exposed")["spec"]
    assert (spec["selector"], spec["ports"][0]["targetPort"]) == ({"app": "p"}, 80)


def test_a_service_is_applied_again(server: Up) -> None:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    server.ok("apply", "-f", "-", stdin=json.dumps(body))
    address = server.get("service", "s")["spec"]["clusterIP"]
    assert "unchanged" in server.ok("apply", "-f", "-", stdin=json.dumps(body))
    body["spec"]["ports"] = [{"port": 81}]  # type: ignore[index]  # an object in JSON
    assert "configured" in server.ok("apply", "-f", "-", stdin=json.dumps(body))
    spec = server.get("service", "s")["spec"]
    assert (spec["clusterIP"], [port["port"] for port in spec["ports"]]) == (address, [81])


def test_the_api_server_is_a_service(server: Up) -> None:
    port = server.state()["server"].rpartition(":")[2]
    assert f"127.0.0.1:{port}" in server.ok("get", "endpoints", "kubernetes")
    assert port in server.ok("get", "endpointslices")
