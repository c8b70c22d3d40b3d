"""exec, attach and port-forward between a client's WebSocket and a runtime's streaming server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kubelet.fake_streaming import FakeStreaming, streaming
from kubelet.harness import IDENTITY, Node
from podfit.net.wire import Request, Response
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
        await asyncio.wait_for(serving, 10)
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
        await asyncio.wait_for(serving, 10)
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
        await asyncio.wait_for(serving, 10)
        assert (2, b"\x03" + told) in pipe.frames


async def test_a_runtime_that_is_killed_is_told_of(node: Node) -> None:
    async with session(node) as (pipe, server, serving):
        pipe.give(frame(b"\x00x"))
        await pipe.until(b"\x01x")
        server.cut()
        await asyncio.wait_for(serving, 10)
        assert b"the container runtime has ended the connection" in pipe.sent


async def test_a_client_that_leaves_leaves_nothing(node: Node) -> None:
    async with session(node) as (pipe, server, serving):
        pipe.give(frame(b"\x00x"))
        await pipe.until(b"\x01x")
        pipe.give()
        await asyncio.wait_for(serving, 10)
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
        await asyncio.wait_for(serving, 10)
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
