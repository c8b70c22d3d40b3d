"""The real kubectl against the API server alone: server-side apply, `apply` of a `List`, and `explain`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.up import Up

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-apply")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster without nodes."""
    up = Up(tmp_path_factory.mktemp("apply"))
    up.start(node="none")
    yield up
    assert up.down().code == 0


def pod(name: str, **resources: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def with_image(made: dict[str, Any]) -> dict[str, Any]:
    made["spec"]["containers"][0]["image"] = "i"
    return made


def managers(server: Up, name: str) -> set[tuple[str, str, str]]:
    found = json.loads(server.ok("get", "pod", name, "-o", "json", "--show-managed-fields"))
    entries = found["metadata"]["managedFields"]
    return {(entry["manager"], entry["operation"], entry.get("subresource", "")) for entry in entries}


@pytest.mark.row("R-003", "R-011")
def test_resize_by_server_side_apply(server: Up) -> None:
    first = with_image(pod("ssa", requests={"cpu": "100m"}, limits={"cpu": "200m"}))
    assert "serverside-applied" in server.ok("apply", "--server-side", "-f", "-", stdin=json.dumps(first))
    resize = ("apply", "--server-side", "--subresource=resize", "-f", "-")
    other = json.dumps(pod("ssa", requests={"cpu": "150m"}))
    refused = server.kubectl(*resize, "--field-manager=vpa", stdin=other)
    assert refused.code != 0
    assert 'conflict with "kubectl": .spec.containers[name="c"].resources.requests.cpu' in refused.err
    server.ok(*resize, "--field-manager=vpa", "--force-conflicts", stdin=other)
    resized = server.get("pod", "ssa")["spec"]["containers"][0]["resources"]
    assert resized == {"requests": {"cpu": "150m"}, "limits": {"cpu": "200m"}}
    assert {("kubectl", "Apply", ""), ("vpa", "Apply", "resize")} <= managers(server, "ssa")


def test_an_object_goes_over_from_client_side_to_server_side_apply(server: Up) -> None:
    body = with_image(pod("over", requests={"cpu": "100m"}))
    server.ok("apply", "-f", "-", stdin=json.dumps(body))
    body["metadata"]["labels"] = {"a": "b"}
    server.ok("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
    assert ("kubectl", "Apply", "") in managers(server, "over")
    assert not {manager for manager in managers(server, "over") if manager[0] == "kubectl-client-side-apply"}
    del body["metadata"]["labels"]
    server.ok("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
    assert "labels" not in server.get("pod", "over")["metadata"]


def test_a_list_is_applied_and_checked(server: Up, tmp_path: Path) -> None:
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}}
    items = [one, with_image(pod("two", requests={"cpu": "100m"}))]
    body = {"apiVersion": "v1", "kind": "List", "items": items}
    assert server.ok("apply", "-f", "-", stdin=json.dumps(body)).split() == [
        "configmap/one",
        "created",
        "pod/two",
        "created",
    ]
    assert "unchanged" in server.ok("apply", "-f", "-", stdin=json.dumps(body))
    one["bogus"] = "1"
    refused = server.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    assert 'unknown field "bogus" in io.k8s.api.core.v1.ConfigMap' in refused.err


def test_explain(server: Up) -> None:
    text = server.ok("explain", "pod.spec.containers.resources")
    assert "FIELD: resources <ResourceRequirements>" in text
    assert ["limits", "<map[string]Quantity>"] in [line.split() for line in text.splitlines()]
    policy = server.ok("explain", "pod.spec.containers.resizePolicy")
    assert "Whether a resize of cpu or memory restarts the container." in policy
    assert "The resource: cpu or memory." in policy
    deep = server.ok("explain", "pod", "--recursive")
    assert ["resizePolicy", "<[]ContainerResizePolicy>"] in [line.split() for line in deep.splitlines()]
