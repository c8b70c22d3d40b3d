"""What is stored and not acted on is told to who creates it, as a warning that kubectl shows."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.api.coordination.v1.types import Lease
from podfit.api.meta.codec import convert
from podfit.core.times import format_micro
from support.clock import FakeClock
from support.server import Server, running_server

TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ONCE: dict[str, Any] = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
KINDS: dict[str, dict[str, Any]] = {
    "/apis/apps/v1/deployments": SELECTED,
    "/apis/apps/v1/replicasets": SELECTED,
    "/apis/apps/v1/daemonsets": SELECTED,
    "/apis/apps/v1/statefulsets": SELECTED | {"serviceName": "s"},
    "/apis/batch/v1/jobs": {"template": ONCE},
    "/apis/batch/v1/cronjobs": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}},
    "/api/v1/replicationcontrollers": {"selector": {"a": "b"}, "template": TEMPLATE},
}


async def create(server: Server, path: str, spec: dict[str, Any], name: str = "w") -> str:
    """The warnings of the answer."""
    base, _, resource = path.rpartition("/")
    body = msgspec.json.encode({"metadata": {"name": name}, "spec": spec})
    answer = await server.ask("POST", f"{base}/namespaces/default/{resource}", body)
    assert answer.status == 201, await answer.read()
    return answer.headers.get("warning", "")


@pytest.mark.parametrize("own", [True, False])
async def test_what_podfits_nodes_do_not_do_is_told_where_the_nodes_are_podfits(own: bool, tmp_path: Path) -> None:
    spec = {"hostUsers": False, "containers": [{"name": "c", "image": "i"}]}
    async with running_server(tmp_path, own_nodes=own) as server:
        assert ("spec.hostUsers" in await create(server, "/api/v1/pods", spec)) == own


UNSERVED: dict[str, tuple[dict[str, Any], str]] = {
    "/api/v1/services": ({"ports": [{"port": 80}]}, "podfit's nodes route no service"),
    "/apis/networking.k8s.io/v1/ingresses": (
        {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
        "no ingress controller",
    ),
    "/apis/networking.k8s.io/v1/networkpolicies": ({"podSelector": {}}, "do not enforce a NetworkPolicy"),
}


@pytest.mark.parametrize("path", UNSERVED)
@pytest.mark.parametrize("own", [True, False])
async def test_what_nothing_of_podfit_acts_on_is_told_where_it_is_alone(path: str, own: bool, tmp_path: Path) -> None:
    spec, text = UNSERVED[path]
    async with running_server(tmp_path, own_nodes=own) as server:
        assert (text in await create(server, path, spec)) == own


async def test_where_a_proxy_runs_no_service_is_warned_of(tmp_path: Path) -> None:
    async with running_server(tmp_path, own_nodes=True, routes_services=True) as server:
        assert not await create(server, "/api/v1/services", {"ports": [{"port": 80}]})


async def test_a_service_without_an_address_promises_no_route(tmp_path: Path) -> None:
    async with running_server(tmp_path, own_nodes=True) as server:
        headless = {"clusterIP": "None", "selector": {"a": "b"}}
        assert not await create(server, "/api/v1/services", headless)
        elsewhere = {"type": "ExternalName", "externalName": "example.com"}
        assert not await create(server, "/api/v1/services", elsewhere, "other")


@pytest.mark.parametrize("path", KINDS)
async def test_a_workload_without_a_controller_gets_a_warning(server: Server, path: str) -> None:
    resource = path.rpartition("/")[2]
    told = await create(server, path, KINDS[path])
    assert told == f'299 - "no controller for {resource} runs in this cluster: no pods will be created"'


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_an_hpa_without_its_controller_gets_a_warning(server: Server, version: str) -> None:
    spec = {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}}
    told = await create(server, f"/apis/autoscaling/{version}/horizontalpodautoscalers", spec)
    lacking = "no controller for horizontalpodautoscalers runs in this cluster"
    assert told == f'299 - "{lacking}: nothing will change the replicas"'


async def test_beside_a_controller_manager_there_is_none_until_its_lease_ends(server: Server) -> None:
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await server.client.create(
        convert(
            {
                "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
                "spec": {"holderIdentity": "m", "leaseDurationSeconds": 15, "renewTime": format_micro(clock.now())},
            },
            Lease,
        )
    )
    path = "/apis/apps/v1/deployments"
    assert not await create(server, path, KINDS[path])
    await clock.advance(16)
    assert await create(server, path, KINDS[path], "late")


async def test_a_template_and_a_pod_without_probes_get_none(server: Server) -> None:
    body = msgspec.json.encode({"metadata": {"name": "t"}, "template": TEMPLATE})
    answer = await server.ask("POST", "/api/v1/namespaces/default/podtemplates", body)
    assert (answer.status, answer.headers.get("warning")) == (201, None)
    assert not await create(server, "/api/v1/pods", TEMPLATE["spec"])
