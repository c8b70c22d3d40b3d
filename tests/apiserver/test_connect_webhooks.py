"""Webhooks that are asked about connections: exec, attach, port-forward and proxies (operation CONNECT)."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.net.wire import Duplex, Identity, Request, Response
from support.server import Server, document, running_server
from support.webhooks import Hooks, denied, patch, register
from support.websocket import HANDSHAKE, Pipe

NS = "/api/v1/namespaces/default"
ADMIN = Identity("admin", ("system:masters",))


class Kubelet:
    """Agrees to whatever it is asked, and writes it down."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        if "upgrade" not in request.headers:
            return Response(200, {"content-type": "text/plain"}, b"of the kubelet")
        return Response(101, {"upgrade": "websocket"}, upgrade=self._nothing)

    async def _nothing(self, _: Duplex) -> None:
        return


@pytest.fixture
def kubelet() -> Kubelet:
    return Kubelet()


@pytest.fixture
async def server(tmp_path: Path, kubelet: Kubelet) -> AsyncIterator[Server]:
    async with running_server(tmp_path, kubelet={"n1": kubelet}.get) as made:
        await made.client.create(convert({"metadata": {"name": "n1"}}, Node))
        yield made


async def running_pod(server: Server, name: str, container: str = "c") -> None:
    spec = {"nodeName": "n1", "containers": [{"name": container, "image": "busybox"}]}
    body = json.dumps({"metadata": {"name": name, "labels": {"a": "b"}}, "spec": spec}).encode()
    assert (await server.ask("POST", f"{NS}/pods", body)).status == 201


async def connect(server: Server, path: str, query: Mapping[str, tuple[str, ...]] | None = None) -> tuple[int, str]:
    """The code, and the message of a refusal."""
    method = "GET"
    headers = {} if "proxy" in path else HANDSHAKE
    answer = await server.api.handler(Request(method, path, query or {}, headers, identity=ADMIN))
    if answer.upgrade is not None:
        await answer.upgrade(Pipe())
        return answer.status, ""
    body = await answer.read()
    return answer.status, document(body)["message"] if answer.status >= 400 else body.decode()


async def test_should_be_able_to_deny_attaching_pod(server: Server, hooks: Hooks, kubelet: Kubelet) -> None:
    """AdmissionWebhook should be able to deny attaching pod: the steps of upstream's conformance spec."""
    text = "attaching to pod 'to-be-attached-pod' is not allowed"

    def deny(request: dict[str, Any]) -> dict[str, Any]:
        ours = request["name"] == "to-be-attached-pod" and request["subResource"] == "attach"
        options = request["object"]
        return denied(message=text) if ours and options["container"] == "container1" else {}

    hooks.answers["/attach"] = deny
    rule = {"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/attach"]}
    await register(server, "validating", hooks.webhook("/attach", rules=[rule], failurePolicy="Fail"))
    await running_pod(server, "to-be-attached-pod", "container1")
    query = {"container": ("container1",), "stdin": ("true",), "stdout": ("true",)}
    code, message = await connect(server, f"{NS}/pods/to-be-attached-pod/attach", query)
    assert code == 400
    assert message == f'admission webhook "attach.example.com" denied the request: {text}'
    assert kubelet.asked == []
    await running_pod(server, "another", "container1")
    assert (await connect(server, f"{NS}/pods/another/attach", query))[0] == 101
    assert (await connect(server, f"{NS}/pods/to-be-attached-pod/exec", query | {"command": ("sh",)}))[0] == 101


STREAMS = {"stdin": True, "stdout": True, "tty": True}
WANTED = {"stdin": ("true",), "stdout": ("1",), "stderr": ("false",), "tty": ("true",)}
ASKED: list[tuple[str, Mapping[str, tuple[str, ...]], str, dict[str, Any]]] = [
    (f"{NS}/pods/p/exec", WANTED | {"command": ("sh", "-c")}, "PodExecOptions", {**STREAMS, "command": ["sh", "-c"]}),
    (f"{NS}/pods/p/attach", WANTED | {"container": ("c",)}, "PodAttachOptions", {**STREAMS, "container": "c"}),
    (f"{NS}/pods/p/portforward", {"ports": ("80", "8080")}, "PodPortForwardOptions", {"ports": [80, 8080]}),
    (f"{NS}/pods/p:80/proxy/a/b/", {"x": ("y",)}, "PodProxyOptions", {"path": "/a/b/"}),
    (f"{NS}/pods/p:80/proxy", {}, "PodProxyOptions", {}),
    (f"{NS}/services/s:80/proxy/x", {"path": ("/other",)}, "ServiceProxyOptions", {"path": "/x"}),
    ("/api/v1/nodes/n1/proxy/metrics", {}, "NodeProxyOptions", {"path": "/metrics"}),
]


@pytest.mark.parametrize(("path", "query", "kind", "options"), ASKED)
async def test_what_a_webhook_is_told_of_a_connection(
    server: Server, hooks: Hooks, path: str, query: Mapping[str, tuple[str, ...]], kind: str, options: dict[str, Any]
) -> None:
    """As upstream: the options are the object, and there are none of a write."""
    hooks.answers["/v"] = lambda _: denied(message="no")
    await running_pod(server, "p")
    parts = path.split("/")
    namespace = parts[4] if parts[3] == "namespaces" else ""
    resource, name, sub = parts[5:8] if namespace else parts[3:6]
    await register(server, "validating", hooks.webhook("/v", f"{resource}/{sub}"))
    assert await connect(server, path, query) == (400, 'admission webhook "v.example.com" denied the request: no')
    (request,) = hooks.requests("/v")
    assert request["object"] == {"kind": kind, "apiVersion": "v1", **options}
    assert request["kind"] == request["requestKind"] == {"group": "", "version": "v1", "kind": kind}
    assert request["resource"] == {"group": "", "version": "v1", "resource": resource}
    assert (request["name"], request.get("namespace", "")) == (name, namespace)
    assert (request["operation"], request["subResource"], request["requestSubResource"]) == ("CONNECT", sub, sub)
    assert (request["oldObject"], request["options"], request["dryRun"]) == (None, None, False)
    assert request["userInfo"]["username"] == "admin"


@pytest.mark.parametrize("path", [path for path, *_ in ASKED])
@pytest.mark.parametrize(("policy", "refused"), [("Fail", True), ("Ignore", False)])
async def test_a_webhook_that_does_not_answer(
    server: Server, kubelet: Kubelet, hooks: Hooks, path: str, policy: str, refused: bool
) -> None:
    dead = {"clientConfig": {"url": "https://127.0.0.1:9/", "caBundle": hooks.bundle}, "failurePolicy": policy}
    for kind in ("validating", "mutating"):
        await register(server, kind, hooks.webhook("/v", "*/*") | dead)
    before = len(kubelet.asked)
    code, message = await connect(server, path, {"command": ("x",), "stdout": ("1",)})
    assert ("failed calling webhook" in message and "connection refused" in message) is refused
    assert (code == 500) is refused
    if refused:
        assert len(kubelet.asked) == before


async def test_a_mutating_webhook_says_what_is_run(server: Server, hooks: Hooks, kubelet: Kubelet) -> None:
    hooks.answers["/m"] = lambda _: patch({"op": "replace", "path": "/command", "value": ["id"]})
    await register(server, "mutating", hooks.webhook("/m", "pods/exec"))
    await running_pod(server, "p")
    query = {"command": ("sh", "-c", "x"), "stdout": ("1",)}
    assert (await connect(server, f"{NS}/pods/p/exec", query))[0] == 101
    assert kubelet.asked[-1].query["command"] == ("id",)


async def test_a_mutating_webhook_says_which_path_of_a_node_is_read(
    server: Server, hooks: Hooks, kubelet: Kubelet
) -> None:
    hooks.answers["/m"] = lambda _: patch({"op": "replace", "path": "/path", "value": "/healthz"})
    await register(server, "mutating", hooks.webhook("/m", "nodes/proxy"))
    assert (await connect(server, "/api/v1/nodes/n1/proxy/metrics"))[0] == 200
    assert kubelet.asked[-1].path == "/healthz"


async def test_only_rules_that_name_connections_are_asked(server: Server, hooks: Hooks) -> None:
    operations = ["CREATE", "UPDATE", "DELETE"]
    rule = {"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["pods/exec"]}
    await register(server, "validating", hooks.webhook("/v", rules=[rule]))
    selects = {"objectSelector": {"matchLabels": {"a": "b"}}}
    await register(server, "validating", hooks.webhook("/labels", "pods/exec", **selects), name="labels")
    await running_pod(server, "p")
    assert (await connect(server, f"{NS}/pods/p/exec", {"command": ("x",), "stdout": ("1",)}))[0] == 101
    assert hooks.asked == [], "options have no labels"


async def test_conditions_read_the_options(server: Server, hooks: Hooks) -> None:
    condition = {"name": "shells", "expression": "object.kind == 'PodExecOptions' && 'sh' in object.command"}
    hooks.answers["/v"] = lambda _: denied(message="no shells")
    await register(server, "validating", hooks.webhook("/v", "pods/exec", matchConditions=[condition]))
    await running_pod(server, "p")
    stdout = {"stdout": ("1",)}
    assert (await connect(server, f"{NS}/pods/p/exec", {"command": ("id",), **stdout}))[0] == 101
    assert (await connect(server, f"{NS}/pods/p/exec", {"command": ("sh",), **stdout}))[0] == 400


async def test_what_a_webhook_warns_of_reaches_the_client(server: Server, hooks: Hooks) -> None:
    hooks.answers["/v"] = lambda request: {"warnings": [f"{request['name']} is watched"]}
    await register(server, "validating", hooks.webhook("/v", "*/*"))
    await running_pod(server, "p")
    query = {"command": ("id",), "stdout": ("1",)}
    for path, headers in ((f"{NS}/pods/p/exec", HANDSHAKE), ("/api/v1/nodes/n1/proxy/x", {})):
        answer = await server.api.handler(Request("GET", path, query, headers, identity=ADMIN))
        assert "is watched" in answer.headers["warning"]
        if answer.upgrade is not None:
            await answer.upgrade(Pipe())
