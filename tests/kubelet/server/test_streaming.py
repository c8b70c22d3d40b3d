"""exec, attach and port-forward between a client's WebSocket and a runtime's streaming server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from kubelet.fake_streaming import FakeStreaming, streaming
from kubelet.harness import IDENTITY, Node
from podfit.kubelet.runtime.errors import CRIError
from podfit.net.wire import Identity, Request, Response
from support.eventually import PATIENCE
from support.websocket import HANDSHAKE, Pipe, frame

EXEC, ATTACH, FORWARD = "/exec/default/web/c1", "/attach/default/web/c1", "/portForward/default/web"
V5, V4, V1 = "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
FAILED: dict[str, object] = {"status": "Failure", "message": "command ended badly", "reason": "NonZeroExitCode"}


def request(path: str, protocol: str, **query: str) -> Request:
    headers = {**HANDSHAKE, "sec-websocket-protocol": protocol}
    asked = {name: tuple(value.split()) for name, value in query.items()}
    return Request("GET", path, asked, headers, identity=IDENTITY)


@asynccontextmanager
async def session(
    node: Node, path: str = EXEC, protocol: str = V5, **query: str
) -> AsyncIterator[tuple[Pipe, FakeStreaming, "asyncio.Task[None]"]]:
    """A running pod, a client that has got its 101, and the task that serves it."""
    async with streaming() as (server, url):
        node.runtime.streaming = url
        node.add()
        await node.runs()
        asked = {"command": "cat", "input": "1", "output": "1"} if path == EXEC and not query else query
        answer = await node.kubelet.handler(request(path, protocol, **asked))
        assert answer.status == 101, await answer.read()
        assert answer.upgrade is not None
        pipe = Pipe()
        serving = asyncio.ensure_future(answer.upgrade(pipe))
        try:
            yield pipe, server, serving
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def test_input_comes_back_and_its_end_ends_the_process(node: Node) -> None:
    async with session(node) as (pipe, server, serving):
        pipe.give(frame(b"\x00hello"), frame(b"\xff\x00"))
        await asyncio.wait_for(serving, 10 * PATIENCE)
        assert pipe.frames == [
            (2, b"\x01"),
            (2, b"\x01hello"),
            (2, b"\x03" + json.dumps({"status": "Success"}).encode()),
            (8, b"\x03\xe8"),
        ]
        assert sorted(server.streams.values()) == ["error", "stdin", "stdout"]
        assert b"upgrade: SPDY/3.1\r\nx-stream-protocol-version: v4.channel.k8s.io" in server.asked[0]


async def test_the_size_of_a_terminal(node: Node) -> None:
    query = {"command": "sh", "input": "1", "output": "1", "error": "1", "tty": "1"}
    async with session(node, EXEC, V5, **query) as (pipe, server, serving):
        pipe.give(frame(b'\x04{"Width":80,"Height":24}'), frame(b"\x00x"), frame(b"\xff\x00"))
        await asyncio.wait_for(serving, 10 * PATIENCE)
        assert server.resized == [b'{"Width":80,"Height":24}']
        assert sorted(server.streams.values()) == ["error", "resize", "stdin", "stdout"], "a terminal has no stderr"


@pytest.mark.parametrize(("protocol", "told"), [(V4, json.dumps(FAILED).encode()), (V1, b"command ended badly")])
async def test_how_a_process_ended_in_older_protocols(node: Node, protocol: str, told: bytes) -> None:
    async with session(node, EXEC, protocol) as (pipe, server, serving):
        server.status = FAILED
        pipe.give(frame(b"\xff\x00"), frame(b"\x00x"))
        await pipe.until(b"\x01x")
        assert not serving.done(), "255 is no channel there"
        await server.end()
        await asyncio.wait_for(serving, 10 * PATIENCE)
        assert (2, b"\x03" + told) in pipe.frames


async def test_a_runtime_that_is_killed_is_told_of(node: Node) -> None:
    async with session(node) as (pipe, server, serving):
        pipe.give(frame(b"\x00x"))
        await pipe.until(b"\x01x")
        server.cut()
        await asyncio.wait_for(serving, 10 * PATIENCE)
        assert b"the container runtime has ended the connection" in pipe.sent


async def test_a_client_that_leaves_leaves_nothing(node: Node) -> None:
    async with session(node) as (pipe, server, serving):
        pipe.give(frame(b"\x00x"))
        await pipe.until(b"\x01x")
        pipe.give()
        await asyncio.wait_for(serving, 10 * PATIENCE)
        await asyncio.wait_for(server.idle.wait(), 10)


async def test_a_client_that_never_reads_is_not_read_for(node: Node) -> None:
    async with session(node) as (pipe, server, serving):
        pipe.give(frame(b"\x00x"))
        await pipe.until(b"\x01x")
        pipe.full = True
        pipe.give(*(frame(b"\x00" + b"y" * 60_000) for _ in range(200)))
        await asyncio.wait_for(pipe.waited_for.wait(), 10)
        assert len(pipe.sent) < 1_000_000, "twelve megabytes were to come"
        assert not serving.done()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await asyncio.wait_for(server.idle.wait(), 10)


async def test_ports_are_forwarded_as_they_are(node: Node) -> None:
    async with session(node, FORWARD, TUNNEL) as (pipe, server, serving):
        pipe.give(frame(b"abc"))
        await pipe.until(b"ABC")
        assert b"x-stream-protocol-version: portforward.k8s.io" in server.asked[0]
        node.runtime.kill_box("web")
        await node.advance(6)
        await asyncio.wait_for(serving, 10 * PATIENCE)
        assert pipe.frames[-1] == (8, b"\x03\xe8"), "the pod is gone, so is the connection"


@pytest.mark.parametrize(
    ("path", "query", "protocol", "code", "text"),
    [
        ("/exec/default/absent/c1", {}, V5, 404, 'pod "absent" does not exist'),
        ("/exec/default/web/c9", {}, V5, 404, 'unable to upgrade connection: container not found ("c9")'),
        (EXEC, {"output": "1"}, V5, 400, "you must specify at least 1 command"),
        (EXEC, {"command": "x"}, V5, 400, "you must specify at least 1 of stdin, stdout, stderr"),
        (ATTACH, {"output": "1"}, "v9", 400, "unable to upgrade: the client asks for [v9]"),
        (FORWARD, {}, V5, 400, "unable to upgrade: the client asks for"),
    ],
)
async def test_what_is_refused(
    node: Node, path: str, query: dict[str, str], protocol: str, code: int, text: str
) -> None:
    node.add()
    await node.runs()
    answer: Response = await node.kubelet.handler(request(path, protocol, **query))
    assert answer.status == code
    assert text in (await answer.read()).decode()


async def test_a_streaming_server_that_is_not_there(node: Node) -> None:
    async with session(node) as (_, server, _serving):
        await server.stop()
        answer = await node.kubelet.handler(request(EXEC, V5, command="x", output="1"))
        assert answer.upgrade is not None
        pipe = Pipe()
        await answer.upgrade(pipe)
        assert b"the runtime's streaming server" in pipe.sent


SPDY = {"upgrade": "SPDY/3.1", "connection": "Upgrade", "x-stream-protocol-version": "v4.channel.k8s.io"}


class Untouched:
    """A runtime of which nothing may be asked."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"the runtime was asked: {name}")


@pytest.mark.parametrize("path", [EXEC, ATTACH, FORWARD])
async def test_who_is_refused_costs_the_runtime_nothing(node: Node, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps a URL for each that it is asked for, and only so many."""
    node.add()
    await node.runs()
    server = node.kubelet.handler
    monkeypatch.setattr(server, "_runtime", Untouched())
    monkeypatch.setattr(server._streaming, "_runtime", Untouched())
    query = {"command": ("x",), "output": ("1",)}
    answer = await server(Request("GET", path, query, SPDY, identity=IDENTITY))
    assert answer.status == 400
    assert "not a WebSocket handshake" in (await answer.read()).decode()


async def test_a_container_runs_although_the_api_has_not_heard_of_it_yet(node: Node) -> None:
    """What the kubelet knows counts: the API's word comes back to it a moment later, on a busy machine later still."""
    node.add()
    node.api.down = True
    await node.until(lambda: node.runtime.running("c1"))
    answer = await node.kubelet.handler(Request("GET", EXEC, {}, SPDY, identity=IDENTITY))
    assert (answer.status, node.phase()) == (400, "Pending")


async def test_a_session_that_is_agreed_on_asks_the_runtime_when_it_begins(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.add()
    await node.runs()
    asked: list[str] = []

    async def refused(*_: object) -> str:
        asked.append("exec")
        raise CRIError("no such thing")

    monkeypatch.setattr(node.runtime, "exec_url", refused)
    answer = await node.kubelet.handler(request(EXEC, V5, command="x", output="1"))
    assert (answer.status, asked) == (101, [])
    assert answer.upgrade is not None
    pipe = Pipe()
    await answer.upgrade(pipe)
    assert asked == ["exec"]
    assert b"no such thing" in pipe.sent


async def test_sessions_are_bounded_on_a_node_and_for_one_user(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podfit.kubelet.server.streaming.MOST_OF_ONE", 1)
    monkeypatch.setattr("podfit.kubelet.server.streaming.MOST_SESSIONS", 2)
    async with session(node) as (pipe, _, _serving):
        pipe.give(frame(b"\x00x"))
        await pipe.until(b"\x01x")
        again = await node.kubelet.handler(request(EXEC, V5, command="cat", output="1"))
        assert (again.status, "limit of one user" in (await again.read()).decode()) == (429, True)
        others = [replace(request(EXEC, V5, command="cat", input="1"), identity=Identity(name)) for name in "ab"]
        begun = [await node.kubelet.handler(other) for other in others]
        assert [answer.status for answer in begun] == [101, 101], "neither has begun"
        pipes = [Pipe(), Pipe()]
        assert begun[0].upgrade is not None
        assert begun[1].upgrade is not None
        serving = asyncio.ensure_future(begun[0].upgrade(pipes[0]))
        await node.rest()
        await asyncio.wait_for(begun[1].upgrade(pipes[1]), 10)
        assert b"this node has 2 streams open" in pipes[1].sent
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_sessions_of_one_pod_are_bounded_whoever_has_them(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podfit.kubelet.server.streaming.MOST_OF_POD", 1)
    another = replace(request(EXEC, V5, command="cat", input="1"), identity=Identity("a"))
    async with session(node) as (pipe, _, _serving):
        pipe.give(frame(b"\x00x"))
        await pipe.until(b"\x01x")
        refused = await node.kubelet.handler(another)
        assert (refused.status, "limit of one pod" in (await refused.read()).decode()) == (429, True)
    assert (await node.kubelet.handler(another)).status == 101


ADDED = {"user-agent": "kubectl/v1.36.2", "accept-encoding": "gzip", "x-forwarded-for": "127.0.0.1"}
RECORDED = {
    "kubectl-command": "kubectl exec",
    "kubectl-session": "5b9c8a1e-0000-4000-8000-000000000000",
    "sec-websocket-key": HANDSHAKE["sec-websocket-key"],
    "sec-websocket-version": "13",
    "upgrade": "websocket",
    "connection": "Upgrade",
}
"""What kubectl 1.36 was recorded to send, and what upstream's API server adds when it hands the request on unchanged,
as it does to nodes that declare ExtendWebSocketsToKubelet."""


@pytest.mark.parametrize(
    ("path", "query", "protocols", "agreed"),
    [
        (EXEC, {"command": ("echo", "hi"), "error": ("1",), "output": ("1",)}, V5, V5),
        (EXEC, {"command": ("cat",), "error": ("1",), "input": ("1",), "output": ("1",)}, V5, V5),
        (ATTACH, {"error": ("1",), "output": ("1",)}, V5, V5),
        (FORWARD, {"port": ("80",)}, TUNNEL, TUNNEL),
    ],
)
async def test_upstreams_api_server_may_ask_as_it_was_asked(
    node: Node, path: str, query: dict[str, tuple[str, ...]], protocols: str, agreed: str
) -> None:
    node.add()
    await node.runs()
    headers = {**RECORDED, **ADDED, "sec-websocket-protocol": protocols}
    answer = await node.kubelet.handler(Request("GET", path, query, headers, identity=IDENTITY))
    assert answer.status == 101
    assert answer.headers["sec-websocket-protocol"] == agreed
