"""Logs and metrics through the node's kubelet."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.apiserver.handlers.subresources import connect
from podfit.apiserver.handlers.subresources.connect import MOST_OF_ONE
from podfit.apiserver.handlers.subresources.node_proxy import LONGEST_REFUSAL
from podfit.apiserver.http.priority_levels import GLOBAL_DEFAULT
from podfit.core.errors import ApiError
from podfit.net.guard import status_response
from podfit.net.wire import Duplex, Identity, Request, Response
from support.server import Server, document, running_server
from support.websocket import HANDSHAKE, Pipe

PODS = "/api/v1/namespaces/default/pods"
ADMIN = Identity("admin", ("system:masters", "system:authenticated"))


class Kubelet:
    """Writes down what it is asked, and answers as it is told."""

    def __init__(self, *, status: int = 200) -> None:
        self.asked: list[Request] = []
        self.status = status
        self.closed = False

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        body = self._lines() if self.status == 200 else b"no log\n"
        return Response(self.status, {"content-type": "text/plain"}, body)

    async def _lines(self) -> AsyncIterator[bytes]:
        try:
            yield b"one\n"
            yield b"two\n"
        finally:
            self.closed = True


async def pod(server: Server, *, node: str = "n1", names: tuple[str, ...] = ("c",), **spec: Any) -> None:
    containers = [{"name": name, "image": "busybox"} for name in names]
    body = {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}
    assert (await server.ask("POST", PODS, json.dumps(body).encode())).status == 201
    if node:
        target = json.dumps({"target": {"name": node}}).encode()
        assert (await server.ask("POST", f"{PODS}/p/binding", target)).status == 201


async def test_a_log_comes_from_the_kubelet_as_it_is_written(tmp_path: Path) -> None:
    kubelet = Kubelet()
    async with running_server(tmp_path, kubelet={"n1": kubelet}.get) as server:
        await pod(server)
        query = "follow=true&tailLines=5&timestamps=true&limitBytes=9&sinceSeconds=3&previous=false&pretty=true"
        answer = await server.ask("GET", f"{PODS}/p/log?{query}")
        assert (answer.status, answer.headers["content-type"]) == (200, "text/plain")
        assert not isinstance(answer.body, bytes), "streamed, not gathered"
        assert await anext(answer.body) == b"one\n"
        await answer.body.aclose()  # type: ignore[attr-defined]  # a stream that can be closed
        assert kubelet.closed, "who stops listening stops the kubelet"
    asked = kubelet.asked[0]
    assert (asked.method, asked.path) == ("GET", "/containerLogs/default/p/c")
    assert {name: values[0] for name, values in asked.query.items()} == {
        "follow": "true",
        "tailLines": "5",
        "timestamps": "true",
        "limitBytes": "9",
        "sinceSeconds": "3",
    }


CHOICES = "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"
NINES = "9" * 5000  # more than Python reads
WRONG = 'PodLogOptions "p" is invalid:'
ALL_WRONG = (
    f"{WRONG} [tailLines: Invalid value: -2: must be greater than or equal to 0, limitBytes: Invalid value: -1: must "
    "be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0, "
    "stream: Forbidden: may not be specified]"
)
GO_TIME, MOMENT = "2006-01-02T15:04:05Z07:00", "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("", 400, CHOICES),
        ("container=z", 400, "container z is not valid for pod p"),
        ("container=a&tailLines=-1", 422, f"{WRONG} tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("container=a&limitBytes=0", 422, f"{WRONG} limitBytes: Invalid value: 0: must be greater than 0"),
        ("container=a&sinceSeconds=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "container=a&sinceSeconds=9223372036854775808",
            400,
            'strconv.ParseInt: parsing "9223372036854775808": value out of range',
        ),
        (f"container=a&tailLines={NINES}", 400, f'strconv.ParseInt: parsing "{NINES}": value out of range'),
        ("container=a&tailLines=", 400, 'strconv.ParseInt: parsing "": invalid syntax'),
        ("container=z&sinceTime=x", 400, f'parsing time "x" as "{GO_TIME}": cannot parse "x" as "2006"'),
        (
            f"container=z&sinceSeconds=1&sinceTime={MOMENT}",
            422,
            f"{WRONG} []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("sinceSeconds=0&limitBytes=-1&tailLines=-2&stream=Stdout", 422, ALL_WRONG),
        (f"container=a&sinceTime={MOMENT}&follow=maybe", 503, "node n1 cannot be reached from this API server"),
        ("container=a", 503, "node n1 cannot be reached from this API server"),
    ],
)
async def test_logs_that_cannot_be_had(server: Server, query: str, code: int, message: str) -> None:
    await pod(server, names=("a", "b"), initContainers=[{"name": "i", "image": "busybox"}])
    answer = await server.ask("GET", f"{PODS}/p/log?{query}")
    assert (answer.status, document(await answer.read())["message"]) == (code, message)


async def test_what_a_log_is_asked_for_is_judged_before_the_pod_is_looked_for(server: Server) -> None:
    assert (await server.ask("GET", f"{PODS}/absent/log")).status == 404
    assert (await server.ask("GET", f"{PODS}/absent/log?tailLines=-1")).status == 422


async def test_a_pod_on_no_node_has_no_log_yet(server: Server) -> None:
    await pod(server, node="")
    answer = await server.ask("GET", f"{PODS}/p/log")
    assert (answer.status, await answer.read()) == (204, b"")


@pytest.mark.parametrize(("status", "reason"), [(400, "BadRequest"), (500, "InternalError")])
async def test_what_the_kubelet_refuses_is_refused(tmp_path: Path, status: int, reason: str) -> None:
    async with running_server(tmp_path, kubelet={"n1": Kubelet(status=status)}.get) as server:
        await pod(server)
        answer = await server.ask("GET", f"{PODS}/p/log")
        refused = document(await answer.read())
        assert (answer.status, refused["reason"], refused["message"]) == (status, reason, "no log")


async def test_a_nodes_own_server_is_read_through_the_proxy(tmp_path: Path) -> None:
    kubelet = Kubelet()
    async with running_server(tmp_path, kubelet=lambda name: kubelet if name == "n1" else None) as server:
        for name in ("n1", "n2"):
            body = json.dumps({"metadata": {"name": name}}).encode()
            assert (await server.ask("POST", "/api/v1/nodes", body)).status == 201
        answer = await server.ask("GET", "/api/v1/nodes/n1/proxy/metrics/resource?x=1")
        assert (answer.status, await answer.read()) == (200, b"one\ntwo\n")
        asked = kubelet.asked[0]
        assert (asked.method, asked.path, asked.query) == ("GET", "/metrics/resource", {"x": ("1",)})
        assert asked.identity is not None
        assert asked.identity.user == "kube-apiserver-kubelet-client"
        await server.ask("GET", "/api/v1/nodes/n1/proxy")
        assert kubelet.asked[1].path == "/"
        for path, code in (("n2/proxy/metrics", 503), ("absent/proxy/metrics", 404)):
            assert (await server.ask("GET", f"/api/v1/nodes/{path}")).status == code
        await server.ask("POST", "/api/v1/nodes/n1/proxy/run", b"x", content_type="text/plain", upgrade="websocket")
        written = kubelet.asked[2]
        assert (written.method, written.path, written.body) == ("POST", "/run", b"x")
        assert written.headers == {"content-type": "text/plain"}, "no connection is upgraded"
        stranger = Identity("someone", ("system:authenticated",))
        assert (await server.ask("GET", "/api/v1/nodes/n1/proxy/metrics", identity=stranger)).status == 403
        assert (await server.ask("POST", "/api/v1/nodes/n1/proxy/run", identity=stranger)).status == 403
        assert len(kubelet.asked) == 3


async def test_a_node_that_refuses_without_end_is_not_listened_to(tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"x" * 4096

    async def kubelet(_: Request) -> Response:
        return Response(500, {"content-type": "text/plain"}, endless())

    async with running_server(tmp_path, kubelet={"n1": kubelet}.get) as server:
        await pod(server)
        answer = await server.ask("GET", f"{PODS}/p/log")
        assert (answer.status, document(await answer.read())["message"]) == (
            500,
            f"the node refused with 500: the answer is larger than {LONGEST_REFUSAL} bytes",
        )
    assert sent == LONGEST_REFUSAL // 4096 + 1


@pytest.mark.parametrize(
    ("protocol", "messages"),
    [("", [(2, b"one\n"), (2, b"two\n")]), ("base64.binary.k8s.io", [(1, b"b25lCg=="), (1, b"dHdvCg==")])],
)
async def test_a_log_over_a_websocket(tmp_path: Path, protocol: str, messages: list[tuple[int, bytes]]) -> None:
    kubelet = Kubelet()
    async with running_server(tmp_path, kubelet={"n1": kubelet}.get) as server:
        await pod(server)
        headers = {**HANDSHAKE, **({"sec-websocket-protocol": protocol} if protocol else {})}
        answer = await server.api.handler(Request("GET", f"{PODS}/p/log", headers=headers, identity=ADMIN))
        assert (answer.status, answer.upgrade is not None) == (101, True)
        assert answer.upgrade is not None
        pipe = Pipe()
        await answer.upgrade(pipe)
        assert pipe.frames == [*messages, (8, b"\x03\xe8")]
        assert kubelet.closed


async def changed(request: Request) -> Response:
    """A kubelet that agrees to speak another protocol, and says what it was asked."""

    async def serve(duplex: Duplex) -> None:
        duplex.write(f"{request.path} {sorted(request.query)} {sorted(request.headers)}".encode())

    return Response(101, {"upgrade": "websocket"}, upgrade=serve)


async def test_a_connection_is_handed_on_to_the_kubelet(tmp_path: Path) -> None:
    async with running_server(tmp_path, kubelet={"n1": changed}.get) as server:
        await pod(server)
        query = {"command": ("sh", "-c"), "stdin": ("true",), "stdout": ("1",), "tty": ("false",)}
        headers = {**HANDSHAKE, "authorization": "Bearer x", "sec-websocket-protocol": "v5.channel.k8s.io"}
        answer = await server.api.handler(Request("GET", f"{PODS}/p/exec", query, headers, identity=ADMIN))
        assert answer.upgrade is not None
        pipe = Pipe()
        await answer.upgrade(pipe)
        names = ["sec-websocket-key", "sec-websocket-protocol", "sec-websocket-version", "upgrade"]
        assert pipe.sent.decode() == f"/exec/default/p/c ['command', 'input', 'output'] {names}"


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("exec?stdout=1", 400, "you must specify at least 1 command"),
        ("exec?command=x", 400, "at least one of stdin, stdout, and stderr is required"),
        ("exec?command=x&stdout=1&container=z", 400, "container z is not valid for pod p"),
        ("attach?stdout=1", 400, "Upgrade request required"),
        ("portforward", 400, "Upgrade request required"),
    ],
)
async def test_connections_that_are_refused(server: Server, path: str, code: int, message: str) -> None:
    await pod(server)
    answer = await server.ask("GET", f"{PODS}/p/{path}")
    assert (answer.status, document(await answer.read())["message"]) == (code, message)


async def test_another_protocol_is_refused_in_the_kubelets_words(tmp_path: Path) -> None:
    """kubectl repeats what was refused to a WebSocket by SPDY, and shows that answer."""
    asked: list[Request] = []

    async def refuses(request: Request) -> Response:
        asked.append(request)
        return status_response(ApiError(501, "NotImplemented", "nothing runs here"))

    async with running_server(tmp_path, kubelet={"n1": refuses}.get) as server:
        await pod(server)
        answer = await server.ask("POST", f"{PODS}/p/exec?command=ls&stdout=1", upgrade="SPDY/3.1")
        assert "nothing runs here" in document(await answer.read())["message"]
        assert asked[0].headers == {}


async def grant(server: Server, *verbs: str) -> None:
    """To the user `reader`, on pods/exec."""
    rules = [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs}]
    subjects = [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}]
    role = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    for kind, body in (
        ("clusterroles", {"rules": rules}),
        ("clusterrolebindings", {"roleRef": role, "subjects": subjects}),
    ):
        text = json.dumps({"metadata": {"name": "r"}, **body}).encode()
        assert (await server.ask("POST", f"/apis/rbac.authorization.k8s.io/v1/{kind}", text)).status == 201


async def test_who_may_only_get_a_connection_may_not_have_one(tmp_path: Path) -> None:
    """A WebSocket is opened with GET, and reading is not speaking to a process."""
    async with running_server(tmp_path, kubelet={"n1": changed}.get) as server:
        await pod(server)
        await grant(server, "get")
        asked = Request("GET", f"{PODS}/p/exec", {"command": ("x",), "stdout": ("1",)}, HANDSHAKE)
        answer = await server.api.handler(asked.with_identity(Identity("reader", ("system:authenticated",))))
        refused = document(await answer.read())
        assert (answer.status, answer.upgrade) == (403, None)
        assert 'cannot create resource "pods/exec"' in refused["message"]


@pytest.mark.parametrize("bound", ["streams of a user", "sessions of a user on a node"])
async def test_who_has_too_many_streams_open_begins_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """The kubelet begins it when it is asked, so the refusal has to come before. What one has open on a node leaves
    room for others."""
    asked, most = 0, MOST_OF_ONE
    if bound == "streams of a user":
        most = GLOBAL_DEFAULT.watches
        monkeypatch.setattr(connect, "MOST_OF_ONE", most + 1)

    async def waits(request: Request) -> Response:
        nonlocal asked
        asked += 1

        async def serve(duplex: Duplex) -> None:
            await asyncio.Event().wait()

        return Response(101, {}, upgrade=serve)

    async with running_server(tmp_path, kubelet={"n1": waits}.get) as server:
        await pod(server)
        await grant(server, "get", "create")
        request = Request("GET", f"{PODS}/p/exec", {"command": ("x",), "stdout": ("1",)}, HANDSHAKE)
        administrator = request.with_identity(ADMIN)
        request = request.with_identity(Identity("reader", ("system:authenticated",)))
        sessions = []
        for _ in range(most):
            answer = await server.api.handler(request)
            assert answer.upgrade is not None
            sessions.append(asyncio.ensure_future(answer.upgrade(Pipe())))
            await asyncio.sleep(0)
        answer = await server.api.handler(request)
        assert (answer.status, asked) == (429, most)
        assert (await server.api.handler(administrator)).status == 101
        for session in sessions:
            session.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)
        assert (await server.api.handler(request)).status == 101


async def test_sessions_that_the_kubelet_refuses_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "MOST_OF_ONE", 1)
    async with running_server(tmp_path, kubelet={"n1": Kubelet(status=500)}.get) as server:
        await pod(server)
        request = Request("GET", f"{PODS}/p/exec", {"command": ("x",), "stdout": ("1",)}, HANDSHAKE, identity=ADMIN)
        assert [(await server.api.handler(request)).status for _ in range(3)] == [500] * 3
