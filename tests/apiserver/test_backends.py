"""Webhooks and APIServices whose service is answered over the network, found without anybody's help."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apiregistration.v1.types import APIService
from podfit.apiserver.extensions.aggregation.remote import REDIRECTED
from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.net.wire import Identity, Request, Response
from support.backends import Listening, endpoint_slice, endpoints, listening, service
from support.etcd import free_ports
from support.eventually import eventually_async
from support.resizing import asking, container, cpu, resize, send, spec, stored
from support.server import ADMIN, Server, document
from support.webhooks import Hooks, register, setting

NAME = "hook.default.svc"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
SERVICES, ENDPOINTS = "/api/v1/namespaces/default/services", "/api/v1/namespaces/default/endpoints"
GROUP = "metrics.k8s.io"
APISERVICE = f"/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.{GROUP}"
UNTRUSTED = ": tls: failed to verify certificate: x509: certificate signed by unknown authority"
FAILED = (
    f'Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://{NAME}:'
)


@pytest.fixture
async def hook(pki: Path) -> AsyncIterator[tuple[Hooks, Listening]]:
    """A webhook server that is `hook` in `default`."""
    hooks = Hooks(0, "")
    async with listening(hooks.handler, pki, NAME) as place:
        hooks.bundle = place.bundle
        yield hooks, place


async def made(server: Server, path: str, body: dict[str, Any]) -> None:
    code, answer = await send(server, "POST", path, body)
    assert code == 201, answer


def webhook(hooks: Hooks, port: int | None = None, bundle: str = "") -> dict[str, Any]:
    place: dict[str, Any] = {"namespace": "default", "name": "hook", "path": "/v"}
    client = {"service": place | ({"port": port} if port else {}), "caBundle": bundle or hooks.bundle}
    return hooks.webhook("/v", "pods/resize") | {"clientConfig": client}


async def test_the_next_address_is_tried(server: Server, hook: tuple[Hooks, Listening]) -> None:
    hooks, place = hook
    hooks.answers["/v"] = lambda _: setting("/spec/containers/0/resources/requests/cpu", "1700m")
    await stored(server)
    await register(server, "mutating", webhook(hooks))
    await made(server, SERVICES, service("hook"))
    other = endpoint_slice("hook", place.host, port=free_ports(1)[0])
    other["metadata"]["name"] = "hook-0"
    await made(server, SLICES, other)
    await made(server, SLICES, endpoint_slice("hook", place.host, port=place.port))
    for _ in range(2):  # whichever of them comes first
        code, body = await resize(server, asking(c="1500m"))
        assert code == 200, body
        assert cpu(body) == "1700m"
    assert len(hooks.requests("/v")) == 2


async def test_pods_are_found_by_the_selector_and_the_port_by_its_name(
    server: Server, hook: tuple[Hooks, Listening]
) -> None:
    hooks, place = hook
    ports = [{"name": "web", "containerPort": place.port}]
    ready = {
        "phase": "Running",
        "podIP": place.host,
        "podIPs": [{"ip": place.host}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    wanted = spec(container("c", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"}, ports=ports))
    await stored(server, wanted, status=ready, labels={"app": "hook"})
    targets = [{"name": "https", "port": 8443, "targetPort": "web"}]
    await made(server, SERVICES, service("hook", selector={"app": "hook"}, ports=targets))
    await register(server, "validating", webhook(hooks, 8443))
    assert (await resize(server, asking(c="1500m")))[0] == 200
    assert len(hooks.requests("/v")) == 1


async def test_endpoints_count_where_there_are_no_slices(server: Server, hook: tuple[Hooks, Listening]) -> None:
    hooks, place = hook
    await stored(server)
    await made(server, SERVICES, service("hook"))
    await made(server, ENDPOINTS, endpoints("hook", place.host, port=place.port))
    await register(server, "validating", webhook(hooks))
    assert (await resize(server, asking(c="1500m")))[0] == 200
    assert len(hooks.requests("/v")) == 1


async def test_an_external_name(server: Server, pki: Path) -> None:
    hooks = Hooks(0, "")
    async with listening(hooks.handler, pki, NAME, host="127.0.0.1") as place:
        hooks.bundle = place.bundle
        await stored(server)
        await made(server, SERVICES, service("hook", type="ExternalName", externalName="localhost", ports=[]))
        await register(server, "validating", webhook(hooks, place.port))
        assert (await resize(server, asking(c="1500m")))[0] == 200
    assert len(hooks.requests("/v")) == 1


async def test_a_service_without_anybody(server: Server, hook: tuple[Hooks, Listening]) -> None:
    hooks, place = hook
    await stored(server)
    await register(server, "validating", webhook(hooks))

    async def said() -> str:
        code, body = await resize(server, asking(c="1500m"))
        assert code == 500
        return str(body["message"]).removeprefix(FAILED + '443/v?timeout=10s": ')

    assert await said() == 'service "hook" not found'
    await made(server, SERVICES, service("hook", ports=[{"name": "https", "port": 80}]))
    assert await said() == 'no service port 443 found for service "hook"'
    await send(server, "DELETE", f"{SERVICES}/hook")
    await made(server, SERVICES, service("hook"))
    assert await said() == 'no endpoints available for service "hook"'
    closed = free_ports(1)[0]
    await made(server, SLICES, endpoint_slice("hook", place.host, port=closed))
    assert await said() == f"dial tcp {place.host}:{closed}: connect: connection refused"
    assert hooks.asked == []


async def test_whom_the_bundle_does_not_vouch_for(
    server: Server, hook: tuple[Hooks, Listening], tmp_path: Path
) -> None:
    hooks, place = hook
    other = base64.b64encode(Authority.load(tmp_path / "other", clock=SystemClock()).certificate).decode()
    await stored(server)
    await made(server, SERVICES, service("hook"))
    await made(server, SLICES, endpoint_slice("hook", place.host, port=place.port))
    await register(server, "validating", webhook(hooks, bundle=other))
    code, body = await resize(server, asking(c="1500m"))
    assert code == 500
    assert body["message"].endswith(UNTRUSTED)


async def test_a_certificate_of_another_name(server: Server, pki: Path) -> None:
    hooks = Hooks(0, "")
    async with listening(hooks.handler, pki, "other.default.svc") as place:
        hooks.bundle = place.bundle
        await stored(server)
        await made(server, SERVICES, service("hook"))
        await made(server, SLICES, endpoint_slice("hook", place.host, port=place.port))
        await register(server, "validating", webhook(hooks))
        code, body = await resize(server, asking(c="1500m"))
        assert code == 500
        assert f"Hostname mismatch, certificate is not valid for '{NAME}'" in body["message"]
    assert hooks.asked == []


# ---------------------------------------------------------------- APIServices


class Metrics:
    """A backend that notes who asked; its answers have no length, as a watch's."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def handler(self, request: Request) -> Response:
        self.asked.append(request)
        listed = {"kind": "APIResourceList", "resources": [{"name": "pods", "kind": "PodMetrics", "verbs": ["list"]}]}
        body = listed if request.path == f"/apis/{GROUP}/v1beta1" else {"kind": "PodMetricsList", "items": []}
        return Response(200, {"content-type": "application/json"}, _pieces(json.dumps(body).encode()))


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 10):
        yield body[start : start + 10]


async def condition(server: Server, reason: str) -> Any:
    """The condition Available, once it has this reason: a backend answers through TCP, which may hold pieces back."""

    async def look() -> Any:
        service = await server.client.get(APIService, f"v1beta1.{GROUP}", "")
        return next(iter(service.status.conditions), None)

    what = f"the reason {reason}"
    return await eventually_async(look, lambda told: told.reason == reason, within=10, what=what, every=0.001)


def registration(**spec: Any) -> dict[str, Any]:
    wanted = {
        "group": GROUP,
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": "default", "name": "m"},
        **spec,
    }
    return {"metadata": {"name": f"v1beta1.{GROUP}"}, "spec": wanted}


async def test_what_an_api_service_is_told_to_lack_and_that_it_comes(server: Server, tmp_path: Path) -> None:
    metrics, where = Metrics(), 'service/m in "default"'
    async with listening(metrics.handler, tmp_path / "pki", "m.default.svc") as place:
        await made(server, APISERVICE.rpartition("/")[0], registration(caBundle=place.bundle))
        assert (await condition(server, "ServiceNotFound")).message == f"{where} is not present"
        await made(server, SERVICES, service("m", ports=[{"name": "https", "port": 80}]))
        assert (await condition(server, "ServicePortError")).message == f"{where} is not listening on port 443"
        await send(server, "DELETE", f"{SERVICES}/m")
        await made(server, SERVICES, service("m"))
        found = await condition(server, "EndpointsNotFound")
        assert (found.status, found.message) == ("False", f"cannot find endpointslices for {where}")
        closed = free_ports(1)[0]
        await made(server, SLICES, endpoint_slice("m", place.host, port=closed))
        url = f"https://{place.host}:{closed}/apis/{GROUP}/v1beta1"
        assert (await condition(server, "FailedDiscoveryCheck")).message == (
            f"failing or missing response from {url}: dial tcp {place.host}:{closed}: connect: connection refused"
        )
        assert (await server.ask("GET", f"/apis/{GROUP}/v1beta1/pods")).status == 503
        code, _ = await send(server, "PUT", f"{SLICES}/m-1", endpoint_slice("m", place.host, port=place.port))
        assert code == 200
        assert (await condition(server, "Passed")).message == "all checks passed"
        await send(server, "DELETE", f"{SLICES}/m-1")
        await made(server, ENDPOINTS, endpoints("m", place.host, port=place.port) | {"subsets": []})
        found = await condition(server, "MissingEndpoints")
        assert found.message == f'endpointslices for {where} have no addresses with port name "https"'


async def test_a_backend_is_told_who_asks(server: Server, tmp_path: Path) -> None:
    metrics = Metrics()
    eve = Identity("eve", ("system:masters", "a,b"), extra={"example.org/Key": ("x", "y")})
    async with listening(metrics.handler, tmp_path / "pki", "other.name") as place:
        await made(server, SERVICES, service("m"))
        await made(server, SLICES, endpoint_slice("m", place.host, port=place.port))
        await made(server, APISERVICE.rpartition("/")[0], registration(insecureSkipTLSVerify=True))
        await condition(server, "Passed")
        answer = await server.ask(
            "GET",
            f"/apis/{GROUP}/v1beta1/pods?limit=1",
            identity=eve,
            authorization="Bearer secret",
            x_remote_user="mallory",
            accept_encoding="gzip",
        )
        assert document(await answer.read())["kind"] == "PodMetricsList"
    # the server has asked, too, whether the backend is there
    (asked,) = [request for request in metrics.asked if request.path.endswith("/pods")]
    headers = asked.headers
    assert asked.query == {"limit": ("1",)}
    assert headers["x-remote-user"] == "eve"
    assert "authorization" not in headers
    assert headers["accept-encoding"] == "identity"


async def test_who_is_not_trusted_is_not_asked(server: Server, tmp_path: Path) -> None:
    metrics = Metrics()
    other = base64.b64encode(Authority.load(tmp_path / "other", clock=SystemClock()).certificate).decode()
    async with listening(metrics.handler, tmp_path / "pki", "m.default.svc") as place:
        await made(server, SERVICES, service("m"))
        await made(server, SLICES, endpoint_slice("m", place.host, port=place.port))
        await made(server, APISERVICE.rpartition("/")[0], registration(caBundle=other))
        text = (await condition(server, "FailedDiscoveryCheck")).message
    assert text.endswith(UNTRUSTED)
    assert metrics.asked == []


async def test_what_a_backend_says_of_its_connection_is_not_passed_on(server: Server, tmp_path: Path) -> None:
    """Neither are a client's words on its own, and a redirect is no answer."""
    metrics, seen = Metrics(), list[Request]()

    async def handler(request: Request) -> Response:
        seen.append(request)
        if request.path.endswith("/moved"):
            return Response(307, {"location": "https://169.254.169.254/"}, b"")
        if request.path.endswith("/pods"):
            told = {"keep-alive": "1", "proxy-authenticate": "Basic", "upgrade": "h2", "x-kept": "1"}
            return Response(200, {"content-type": "application/json", **told}, b"{}")
        return await metrics.handler(request)

    async with listening(handler, tmp_path / "pki", "m.default.svc") as place:
        await made(server, SERVICES, service("m"))
        await made(server, SLICES, endpoint_slice("m", place.host, port=place.port))
        await made(server, APISERVICE.rpartition("/")[0], registration(caBundle=place.bundle))
        await condition(server, "Passed")
        path = f"/apis/{GROUP}/v1beta1"
        answer = await server.ask(
            "GET",
            f"{path}/pods",
            connection="X-Secret",
            x_secret="1",
            te="trailers",
            proxy_authorization="a",
            x_mine="1",
            x_remote_group="system:masters",
            x_remote_extra_a="b",
        )
        assert {"keep-alive", "proxy-authenticate", "upgrade", "x-kept"} & set(answer.headers) == {"x-kept"}
        moved = await server.ask("GET", f"{path}/moved")
        assert (moved.status, "location" in moved.headers) == (502, False)
        assert await moved.read() == REDIRECTED.encode()
    sent = next(request.headers for request in seen if request.path.endswith("/pods"))
    assert sent["x-mine"] == "1"
    assert not {"x-secret", "te", "proxy-authorization", "x-remote-extra-a"} & set(sent)
    assert sent["x-remote-group"].startswith(ADMIN.groups[0])
    assert sent["x-remote-user"] == ADMIN.user
