"""Group versions that another component serves: passed on with the user's name, shown, and missed when it is away."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.api.apiregistration.v1.types import APIService
from podfit.api.meta.codec import convert, to_dict
from podfit.api.registry import info_for
from podfit.apiserver.extensions.aggregation.table import CHECK_SECONDS
from podfit.core.errors import ApiError
from podfit.net.wire import Handler, Identity, Request, Response
from podfit.store.protocol import StoreUnavailable
from support.clock import FakeClock
from support.server import Server, document, running_server

GROUP = "metrics.k8s.io"
PATH = f"/apis/{GROUP}/v1beta1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/v1beta1",
    "resources": [
        {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
    ],
}


@dataclass
class Backend:
    """A metrics API of one pod, which can be away."""

    there: bool = True
    resources: Any = field(default_factory=lambda: RESOURCES["resources"])
    asked: list[Request] = field(default_factory=list)

    def find(self, service: ServiceReference) -> Handler | None:
        return self.handler if (service.namespace, service.name, service.port) == ("kube-system", "m", 443) else None

    async def handler(self, request: Request) -> Response:
        if not self.there:
            raise ConnectionRefusedError("connection refused")
        self.asked.append(request)
        listed = RESOURCES | {"resources": self.resources}
        body: dict[str, Any] = listed if request.path == PATH else {"kind": "PodMetricsList", "items": []}
        return Response(200, {"content-type": "application/json"}, json.dumps(body).encode())


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server(tmp_path: Path, backend: Backend, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(tmp_path, clock=clock, services=backend.find) as running:
        yield running


def registration(name: str = "m") -> APIService:
    service = {"namespace": "kube-system", "name": name}
    spec = {
        "group": GROUP,
        "version": "v1beta1",
        "service": service,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
    }
    return convert({"metadata": {"name": f"v1beta1.{GROUP}"}, "spec": spec}, APIService)


async def at_rest(server: Server) -> None:
    assert isinstance(server.context.clock, FakeClock)
    await server.context.clock.settle()


async def available(server: Server, status: str) -> Any:
    """The condition, which has this status when the server has come to rest."""
    await at_rest(server)
    (found,) = (await server.client.get(APIService, f"v1beta1.{GROUP}", "")).status.conditions
    assert found.status == status
    return found


async def page(server: Server, path: str, accept: str = "") -> Any:
    return document(await (await server.ask("GET", path, accept=accept)).read())


async def test_requests_are_passed_on_with_the_name_of_the_user(server: Server, backend: Backend) -> None:
    await server.client.create(registration())
    await available(server, "True")
    answer = await server.ask(
        "GET",
        f"{PATH}/namespaces/default/pods?limit=1",
        identity=Identity("eve", ("system:masters", "b")),
        authorization="Bearer secret",
        x_remote_user="mallory",
    )
    assert document(await answer.read())["kind"] == "PodMetricsList"
    got = backend.asked[-1]
    groups = "system:masters,b,system:authenticated"
    assert (got.headers["x-remote-user"], got.headers["x-remote-group"]) == ("eve", groups)
    assert got.query == {"limit": ("1",)}
    assert "authorization" not in got.headers


async def test_who_may_not_is_not_passed_on(server: Server, backend: Backend) -> None:
    await server.client.create(registration())
    await available(server, "True")
    before = len(backend.asked)
    answer = await server.ask("GET", f"{PATH}/namespaces/default/pods", identity=Identity("eve"))
    assert answer.status == 403
    assert len(backend.asked) == before


async def test_a_condition_that_cannot_be_stored_keeps_no_server_from_starting(
    server: Server, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: another look writes it."""
    await server.client.create(registration())
    await available(server, "True")
    backend.there = False

    async def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("not stored: the disk is full")

    with monkeypatch.context() as full:
        full.setattr(server.context.store, "update", fail)
        await server.api.ask_backends()
        await available(server, "True")
    await server.api.ask_backends()
    await available(server, "False")


async def test_discovery_shows_it(server: Server) -> None:
    await server.client.create(registration())
    await available(server, "True")
    assert GROUP in [group["name"] for group in (await page(server, "/apis"))["groups"]]
    assert (await page(server, f"/apis/{GROUP}"))["preferredVersion"]["version"] == "v1beta1"
    assert (await page(server, PATH))["resources"][0]["name"] == "pods"
    items = (await page(server, "/apis", AGGREGATED))["items"]
    version = next(item for item in items if item["metadata"]["name"] == GROUP)["versions"][0]
    assert version["freshness"] == "Current"
    assert version["resources"][0]["responseKind"]["kind"] == "PodMetrics"


@pytest.mark.parametrize(
    ("resources", "reason", "freshness"),
    [
        (None, "Passed", "Current"),  # Go's empty list
        ([{"name": "pods", "verbs": None}], "Passed", "Current"),
        ([{"name": 1}], "FailedDiscoveryCheck", "Stale"),
        ("none", "FailedDiscoveryCheck", "Stale"),
    ],
)
async def test_discovery_stands_whatever_a_backend_lists(
    server: Server, backend: Backend, resources: Any, reason: str, freshness: str
) -> None:
    backend.resources = resources
    await server.client.create(registration())
    assert (await available(server, "True" if reason == "Passed" else "False")).reason == reason
    items = (await page(server, "/apis", AGGREGATED))["items"]
    assert [version["freshness"] for version in items[-1]["versions"]] == [freshness]


async def test_while_it_is_away(server: Server, backend: Backend, clock: FakeClock) -> None:
    backend.there = False
    await server.client.create(registration())
    condition = await available(server, "False")
    assert condition.reason == "FailedDiscoveryCheck"
    answer = await server.ask("GET", f"{PATH}/nodes")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    items = (await page(server, "/apis", AGGREGATED))["items"]
    assert {"version": "v1beta1", "freshness": "Stale"} in items[-1]["versions"]
    backend.there = True
    await clock.advance(CHECK_SECONDS)
    assert (await available(server, "True")).reason == "Passed"
    backend.there = False
    assert (await server.ask("GET", f"{PATH}/nodes")).status == 503


async def test_a_service_that_nobody_knows(server: Server) -> None:
    await server.client.create(registration("other"))
    assert (await available(server, "False")).reason == "ServiceNotFound"
    await server.client.delete(APIService, f"v1beta1.{GROUP}", "")
    await at_rest(server)
    assert (await server.ask("GET", f"{PATH}/nodes")).status == 404


async def test_what_is_served_here_is_listed_as_local(server: Server) -> None:
    await server.api.publish("https://192.0.2.1:6443")
    await server.api.publish("https://192.0.2.1:6443")
    found = {apiservice.metadata.name: apiservice for apiservice in (await server.client.list(APIService)).items}
    assert {"v1.", "v1.apps", "v1.storage.k8s.io"} <= found.keys()
    info = info_for(APIService)
    assert info.row is not None
    assert info.row(found["v1."], "2026-01-01T00:00:00Z")[1:3] == ["Local", "True"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"version": "v2"}, "metadata.name: Invalid value"),
        ({"groupPriorityMinimum": 0}, "spec.groupPriorityMinimum: Invalid value: 0: must be positive"),
        ({"versionPriority": 1001}, "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000"),
        ({"service": {"name": "x"}}, "spec.service.namespace: Required value"),
        ({"caBundle": "YQ=="}, "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle"),
    ],
)
async def test_bad_registrations(server: Server, change: dict[str, Any], text: str) -> None:
    body = to_dict(registration())
    body["spec"] |= change
    with pytest.raises(ApiError) as refused:
        await server.client.create(convert(body, APIService))
    assert text in refused.value.message
