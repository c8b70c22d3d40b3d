"""pods/proxy and services/proxy: a request passed on to a pod, and what it may not reach."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.meta.codec import convert
from podfit.apiserver.extensions.proxies.proxy import HEAD_SECONDS, MOST_OF_USER
from podfit.client.rest import MERGE_PATCH
from podfit.net.wire import Identity, Request, Response
from support.access import JANE, grant, rule
from support.backends import listening, own_address
from support.clock import FakeClock
from support.eventually import PATIENCE
from support.plain_http import Asked, Program, answered, running
from support.server import ADMIN, Server, document, running_server
from support.websocket import HANDSHAKE, Pipe

NS = "/api/v1/namespaces/default"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_server(tmp_path, clock=clock) as made:
        yield made


@pytest.fixture
async def program() -> AsyncIterator[Program]:
    async with running(own_address()) as made:
        yield made


async def made_pod(server: Server, port: int, *, name: str = "p", ip: str = "", node: str = "") -> None:
    """A pod as its kubelet would tell it."""
    ports = {"ports": [{"containerPort": port}]} if port else {}
    container = {"name": "c", "image": "busybox", **ports}
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    await server.client.create(convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod))
    ip = ip or own_address()
    status = {"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}}
    await server.client.patch(Pod, name, "default", status, content_type=MERGE_PATCH, subresource="status")


async def made_service(server: Server, port: int, *, name: str = "s", pod: str = "p", **address: Any) -> None:
    """A service with two named ports, and what its controller would tell of it."""
    ports = [{"name": "portname1", "port": 80}, {"name": "portname2", "port": 81}]
    meta = {"name": name, "namespace": "default"}
    await server.client.create(convert({"metadata": meta, "spec": {"ports": ports}}, Service))
    ref = {"kind": "Pod", "name": pod, "namespace": "default"}
    subset = {
        "addresses": [{"ip": own_address(), "targetRef": ref, **address}],
        "ports": [{"name": "portname1", "port": port}, {"name": "portname2", "port": port}],
    }
    await server.client.create(convert({"metadata": meta, "subsets": [subset]}, Endpoints))


async def test_proxy_version_v1_should_proxy_through_a_service_and_a_pod(server: Server, program: Program) -> None:
    """By upstream's spec: each way of naming the place, with and without scheme and port."""
    await made_pod(server, program.port)
    await made_service(server, program.port)
    for place in ("s:portname1", "s:80", "http:s:portname2", "http:s:81"):
        answer = await server.ask("GET", f"{NS}/services/{place}/proxy/foo?a=b&a=c")
        assert (answer.status, document(await answer.read())["target"]) == (200, "/foo?a=b&a=c"), place
    for place in ("p", f"p:{program.port}", f"http:p:{program.port}", "http:p:"):
        answer = await server.ask("GET", f"{NS}/pods/{place}/proxy/")
        assert (answer.status, document(await answer.read())["target"]) == (200, "/"), place


@pytest.mark.parametrize("kind", ["pods/p", "services/s:portname1"])
async def test_a_set_of_valid_responses_are_returned_for_both_pod_and_service_proxy(
    server: Server, program: Program, kind: str
) -> None:
    """By upstream's specs, of Proxy and of ProxyWithPath: every method, and the redirect to the slash."""
    await made_pod(server, program.port)
    await made_service(server, program.port)
    for method in METHODS:
        for path, there in (("/", "/"), ("/some/path/with/", "/some/path/with/"), ("/a//b%2Fc", "/a//b%2Fc")):
            answer = await server.ask(method, f"{NS}/{kind}/proxy{path}?method={method}", b"body")
            said = document(await answer.read())
            assert (answer.status, said) == (
                200,
                {"method": method, "target": f"{there}?method={method}", "body": "body"},
            )
    answer = await server.ask("HEAD", f"{NS}/{kind}/proxy/")
    assert (answer.status, await answer.read(), program.asked[-1].method) == (200, b"", "HEAD")
    for method in ("GET", "HEAD"):
        answer = await server.ask(method, f"{NS}/{kind}/proxy?method={method}")
        assert (answer.status, answer.headers["location"]) == (301, f"{NS}/{kind}/proxy/?method={method}")
    answer = await server.ask("POST", f"{NS}/{kind}/proxy?method=POST")
    assert document(await answer.read())["target"] == "/?method=POST"
    assert (await server.ask("TRACE", f"{NS}/{kind}/proxy/")).status == 405


async def test_load_is_driven_through_a_service(server: Server, program: Program) -> None:
    """As upstream's tests of HPA and VPA ask their resource consumer."""
    await made_pod(server, program.port)
    await made_service(server, program.port)
    path = f"{NS}/services/s:80/proxy/ConsumeCPU?durationSec=30&millicores=100&requestSizeMillicores=20"
    assert document(await (await server.ask("POST", path)).read())["method"] == "POST"
    assert program.asked[-1].target == "/ConsumeCPU?durationSec=30&millicores=100&requestSizeMillicores=20"


async def test_who_asks_is_not_told_and_where_it_came_from_is(server: Server, program: Program) -> None:
    await made_pod(server, program.port)
    request = Request(
        "GET",
        f"{NS}/pods/p/proxy/x",
        {"watch": ("true",), "timeout": ("never",)},
        {
            "authorization": "Bearer secret",
            "x-remote-user": "root",
            "connection": "close, x-hop",
            "x-hop": "1",
            "x-many": "a, b",
            "host": "api.example",
            "cookie": "c=d",
        },
        identity=Identity("admin", ("system:masters",)),
        remote="192.0.2.7",
        repeated={"x-many": ("a", "b")},
    )
    assert await (await server.api.handler(request)).read()
    told = program.asked[-1]
    for name in ("authorization", "x-remote-user", "x-hop"):
        assert told.values(name) == []
    assert (told.values("x-many"), told.values("cookie")) == (["a", "b"], ["c=d"])
    assert told.values("x-forwarded-for") == ["192.0.2.7"]
    assert told.values("x-forwarded-uri") == [f"{NS}/pods/p/proxy/x"]
    assert told.values("x-forwarded-host") == ["api.example"]
    assert told.target == "/x?watch=true&timeout=never"


async def test_an_answer_comes_back_without_what_is_the_connections(server: Server, program: Program) -> None:
    def moved(asked: Asked) -> bytes:
        place = f"http://{own_address()}:{program.port}/next/" if asked.target == "/far" else "/next/?q#f"
        return answered(b"go", "302 Found", Location=place, Access_Control_Allow_Origin="*", X_Own="1", Keep_Alive="t")

    program.answer = moved
    await made_pod(server, program.port)
    answer = await server.ask("GET", f"{NS}/pods/p/proxy/here")
    assert (answer.status, await answer.read(), answer.headers["x-own"]) == (302, b"go", "1")
    assert answer.headers["location"] == f"{NS}/pods/p/proxy/next/?q#f"
    assert not {"access-control-allow-origin", "keep-alive", "content-length"} & answer.headers.keys()
    answer = await server.ask("GET", f"{NS}/pods/p/proxy/far")
    await answer.read()
    assert answer.headers["location"] == f"{NS}/pods/p/proxy/next/"
    program.answer = lambda _: answered(b"", "302 Found", Location="https://elsewhere.example/x")
    answer = await server.ask("GET", f"{NS}/pods/p/proxy/here")
    await answer.read()
    assert answer.headers["location"] == "https://elsewhere.example/x"


async def test_a_pod_that_speaks_tls_is_asked_so(server: Server, tmp_path: Path) -> None:
    async def hello(request: Request) -> Response:
        return Response(200, {"content-type": "text/plain"}, request.path.encode())

    async with listening(hello, tmp_path / "tls", "any.name") as there:
        await made_pod(server, there.port)
        answer = await server.ask("GET", f"{NS}/pods/https:p:{there.port}/proxy/tls")
        assert (answer.status, await answer.read()) == (200, b"/tls")


async def test_a_websocket_goes_through(server: Server, program: Program) -> None:
    program.answer = lambda _: b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    await made_pod(server, program.port)
    request = Request("GET", f"{NS}/pods/p/proxy/ws", headers=HANDSHAKE, identity=ADMIN)
    answer = await server.api.handler(request)
    assert answer.status == 101
    assert answer.upgrade is not None
    pipe = Pipe()
    carrying = asyncio.ensure_future(answer.upgrade(pipe))
    pipe.give(b"hello")
    await pipe.until(b"HELLO")
    pipe.give()
    await carrying


REFUSED = [
    ("pods/p:1:2:3", 400, 'invalid pod request "p:1:2:3"'),
    ("pods/ftp:p:21", 400, 'invalid pod request "ftp:p:21"'),
    ("pods/:80", 400, 'invalid pod request ":80"'),
    ("pods/none", 404, 'pods "none" not found'),
    ("pods/p:http", 503, "error trying to reach service: dial tcp: lookup tcp/http: unknown port"),
    ("pods/p:0", 503, "error trying to reach service: dial tcp: lookup tcp/0: unknown port"),
    ("pods/p:65536", 503, "error trying to reach service: dial tcp: lookup tcp/65536: unknown port"),
    ("services/none:80", 404, 'services "none" not found'),
    ("services/s:82", 503, 'no service port 82 found for service "s"'),
    ("services/s", 503, 'no endpoints available for service "s"'),
    ("services/s:other", 503, 'no endpoints available for service "s:other"'),
]


@pytest.mark.parametrize(("place", "code", "message"), REFUSED)
async def test_places_that_are_none(server: Server, program: Program, place: str, code: int, message: str) -> None:
    await made_pod(server, program.port)
    await made_service(server, program.port)
    answer = await server.ask("GET", f"{NS}/{place}/proxy/")
    assert (answer.status, document(await answer.read())["message"]) == (code, message)
    assert program.asked == []


@pytest.mark.parametrize(
    "ip", ["127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "255.255.255.255", ""]
)
async def test_what_is_no_pods_address_is_not_asked(server: Server, ip: str) -> None:
    async with running("127.0.0.1") as neighbour:
        await made_pod(server, neighbour.port)
        status = {"status": {"podIP": ip, "podIPs": [{"ip": ip}] if ip else None}}
        await server.client.patch(Pod, "p", "default", status, content_type=MERGE_PATCH, subresource="status")
        answer = await server.ask("GET", f"{NS}/pods/p/proxy/")
        assert (answer.status, document(await answer.read())["message"]) == (400, "address not allowed")
        assert neighbour.asked == []


@pytest.mark.parametrize(
    "address",
    [{"targetRef": None}, {"targetRef": {"kind": "Pod", "name": "p", "namespace": "other"}}, {"ip": "10.9.9.9"}],
)
async def test_endpoints_that_are_no_pods_of_the_namespace_are_not_asked(
    server: Server, program: Program, address: dict[str, Any]
) -> None:
    await made_pod(server, program.port)
    await made_service(server, program.port, **address)
    answer = await server.ask("GET", f"{NS}/services/s:80/proxy/")
    assert (answer.status, document(await answer.read())["message"]) == (
        503,
        'no endpoints available for service "s:80"',
    )


async def test_a_pod_of_a_simulated_node_runs_nothing(server: Server, program: Program) -> None:
    meta = {"name": "sim", "labels": {"podfit.dev/simulated": "true"}}
    await server.client.create(convert({"metadata": meta}, Node))
    await made_pod(server, program.port, node="sim")
    answer = await server.ask("GET", f"{NS}/pods/p/proxy/")
    assert answer.status == 503
    assert "pods of the simulated node sim run nothing" in document(await answer.read())["message"]
    assert program.asked == []


async def test_a_pod_where_nobody_listens(server: Server, program: Program) -> None:
    await made_pod(server, program.port)
    answer = await server.ask("GET", f"{NS}/pods/p:1/proxy/")
    assert answer.status == 503
    assert document(await answer.read())["message"].endswith("connect: connection refused")


@pytest.mark.parametrize(
    ("method", "verb"),
    [("GET", "get"), ("POST", "create"), ("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete")],
)
async def test_each_method_is_a_right_of_its_own(server: Server, program: Program, method: str, verb: str) -> None:
    await made_pod(server, program.port)
    path = f"{NS}/pods/p/proxy/"
    refused = await server.ask(method, path, identity=JANE)
    assert refused.status == 403
    assert f'cannot {verb} resource "pods/proxy"' in document(await refused.read())["message"]
    await grant(server, rule(verb, "pods/proxy"))
    assert document(await (await server.ask(method, path, identity=JANE)).read())["method"] == method
    others = [other for other in METHODS[:-1] if other != method]
    assert [(await server.ask(other, path, identity=JANE)).status for other in others] == [403] * 4


async def test_pods_that_do_not_answer_take_few_seats(server: Server, clock: FakeClock) -> None:
    """Each waits for a minute; more of one user than so many are refused at once."""
    began = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        began.set()
        await reader.read()
        writer.close()

    hanging = await asyncio.start_server(silent, own_address(), 0)
    await made_pod(server, hanging.sockets[0].getsockname()[1])
    ask = f"{NS}/pods/p/proxy/"
    waiting = [asyncio.create_task(server.ask("GET", ask)) for _ in range(MOST_OF_USER)]
    await began.wait()
    await clock.settle()
    refused = await server.ask("GET", ask)
    assert (refused.status, document(await refused.read())["reason"]) == (429, "TooManyRequests")
    await clock.advance(HEAD_SECONDS + 1)
    assert {(await task).status for task in waiting} == {504}
    hanging.close()


async def test_who_leaves_ends_the_connection(server: Server) -> None:
    ended = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await reader.read()
        ended.set()
        writer.close()

    streaming = await asyncio.start_server(endless, own_address(), 0)
    await made_pod(server, streaming.sockets[0].getsockname()[1])
    answer = await server.ask("GET", f"{NS}/pods/p/proxy/")
    assert not isinstance(answer.body, bytes)
    assert await anext(answer.body) == b"one"
    await answer.body.aclose()  # type: ignore[attr-defined]  # a stream that can be closed
    async with asyncio.timeout(5 * PATIENCE):
        await ended.wait()
    streaming.close()


async def test_a_node_whose_name_begins_with_proxy_is_asked_by_its_path(tmp_path: Path) -> None:
    asked: list[str] = []

    async def kubelet(request: Request) -> Response:
        asked.append(request.path)
        return Response(200, {"content-type": "text/plain"}, b"")

    async with running_server(tmp_path, kubelet=lambda _: kubelet) as server:
        for name in ("proxy", "proxy1"):
            await server.client.create(convert({"metadata": {"name": name}}, Node))
            assert (await server.ask("GET", f"/api/v1/nodes/{name}/proxy/metrics/proxy/x")).status == 200
    assert asked == ["/metrics/proxy/x"] * 2


async def test_discovery_tells_of_them(server: Server) -> None:
    listed = document(await (await server.ask("GET", "/api/v1")).read())["resources"]
    kinds = {one["name"]: (one["kind"], one["verbs"]) for one in listed if one["name"].endswith("/proxy")}
    verbs = ["create", "delete", "get", "patch", "update"]
    assert kinds == {
        "nodes/proxy": ("NodeProxyOptions", verbs),
        "pods/proxy": ("PodProxyOptions", verbs),
        "services/proxy": ("ServiceProxyOptions", verbs),
    }
