import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import cast

import pytest

from podfit.net.authority import Authority
from podfit.net.http_client import HttpsClient
from podfit.net.http_server import HttpsServer
from podfit.net.reachability import ConnectionRoute, Unreachable
from podfit.net.tls import KeyPair, client_context, server_context
from podfit.net.wire import Handler, Request, Response
from podfit.net.x509 import certificate_identity
from support.clock import at_rest
from support.proxy import proxy
from support.wire import HOST

Serving = Callable[[Handler], AbstractAsyncContextManager[int]]
CLOSED, CLOSE_WAIT = 7, 8  # of TCP


async def test_carries_requests_as_they_are(serving: Serving, trusting: ssl.SSLContext) -> None:
    seen: list[Request] = []

    async def handler(request: Request) -> Response:
        seen.append(request)
        return Response(201, {"X-Thing": "1"}, b"made")

    tokens = iter(["one", "two"])
    async with serving(handler) as port:
        client = HttpsClient(f"https://{HOST}:{port}/", trusting, token=lambda: next(tokens))
        request = Request(
            "PUT", "/a b/c%2Fd/system:x", {"l": ("a=b,c in (d)", "é")}, {"content-type": "text/plain"}, b"\x00body"
        )
        response = await client.send(request)
        await client.send(request)
        await client.close()
    assert (response.status, response.headers["x-thing"], response.body) == (201, "1", b"made")
    assert (seen[0].method, seen[0].path, seen[0].query) == (request.method, request.path, request.query)
    assert (seen[0].body, seen[0].headers["content-type"]) == (b"\x00body", "text/plain")
    assert [request.headers["authorization"] for request in seen] == ["Bearer one", "Bearer two"]


async def test_shows_its_certificate(authority: Authority, serving: Serving) -> None:
    async def who(request: Request) -> Response:
        identity = certificate_identity(request.peer_certificate or b"")
        return Response(200, {}, identity.user.encode() if identity else b"")

    pair = authority.client("node", user="system:node:n1", groups=("system:nodes",))
    tls = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    async with serving(who) as port:
        client = HttpsClient(f"https://{HOST}:{port}", tls)
        assert await (await client.send(Request("GET", "/"))).read() == b"system:node:n1"
        await client.close()


async def test_nobody_there_is_unreachable(trusting: ssl.SSLContext, serving: Serving) -> None:
    async def handler(request: Request) -> Response:
        return Response()

    async with serving(handler) as port:
        pass
    client = HttpsClient(f"https://{HOST}:{port}", trusting)
    with pytest.raises(Unreachable, match=f"https://{HOST}:{port}"):
        await client.send(Request("GET", "/"))
    await client.close()


async def test_a_server_of_another_authority_is_unreachable(serving: Serving) -> None:
    async def handler(request: Request) -> Response:
        return Response()

    async with serving(handler) as port:
        client = HttpsClient(f"https://{HOST}:{port}", client_context())
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await client.send(Request("GET", "/"))
        await client.close()


@pytest.mark.parametrize("begun", [False, True])
async def test_silence_is_unreachable(serving: Serving, trusting: ssl.SSLContext, begun: bool) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"begun"
        await asyncio.Event().wait()

    async def handler(request: Request) -> Response:
        if not begun:
            await asyncio.Event().wait()
        return Response(200, {}, body())

    async with serving(handler) as port:
        client = HttpsClient(f"https://{HOST}:{port}", trusting)
        with pytest.raises(Unreachable, match=r"imeout|timed out"):
            await (await client.send(Request("GET", "/"), read_timeout=0.1)).read()
        await client.close()


async def test_a_stream_is_told_as_it_comes_and_can_be_left(serving: Serving, trusting: ssl.SSLContext) -> None:
    left = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            yield b"one"
            await asyncio.Event().wait()
        finally:
            left.set()

    async def handler(request: Request) -> Response:
        return Response(200, {}, body() if request.path == "/watch" else b"whole")

    async with serving(handler) as port:
        client = HttpsClient(f"https://{HOST}:{port}", trusting)
        stream = (await client.send(Request("GET", "/watch"), read_timeout=None)).body
        assert not isinstance(stream, bytes)
        assert await anext(aiter(stream)) == b"one"
        assert await (await client.send(Request("GET", "/"))).read() == b"whole"
        await stream.aclose()  # type: ignore[attr-defined]  # of any stream of an answer
        await asyncio.wait_for(left.wait(), 10)
        await client.close()


async def echo(request: Request) -> Response:
    async def body() -> AsyncIterator[bytes]:
        yield b"in pieces"

    return Response(200, {}, body() if request.path == "/pieces" else b"whole")


async def test_a_connection_is_used_again_and_replaced_when_it_was_closed(
    serving: Serving, trusting: ssl.SSLContext
) -> None:
    async with serving(echo) as port, proxy(HOST) as (between, there):
        client = HttpsClient(
            f"https://{HOST}:{port}", trusting, reach=ConnectionRoute(proxy=f"http://me:se%2Fcret@{HOST}:{there}")
        )
        for path in ("/", "/pieces", "/"):
            await (await client.send(Request("GET", path))).read()
        assert len(between.heads) == 1
        assert between.heads[0].startswith(f"CONNECT {HOST}:{port} HTTP/1.")
        assert "proxy-authorization: basic bwu6c2uvy3jldA==".casefold() in between.heads[0].casefold()
        between.drop()
        await at_rest()  # the goodbye has gone through two sockets
        assert await (await client.send(Request("GET", "/"))).read() == b"whole"
        assert len(between.heads) == 2
        await client.close()


async def test_a_server_may_have_another_name_than_its_address(authority: Authority, trusting: ssl.SSLContext) -> None:
    server = HttpsServer(echo, server_context(authority.server("named", hosts=("api.example",))))
    port = await server.listen(HOST, 0)
    for name, good in (("api.example", True), ("other.example", False)):
        client = HttpsClient(f"https://{HOST}:{port}", trusting, reach=ConnectionRoute(server_name=name))
        if good:
            assert (await client.send(Request("GET", "/"))).status == 200
        else:
            with pytest.raises(Unreachable, match="certificate"):
                await client.send(Request("GET", "/"))
        await client.close()
    await server.close(deadline=1.0)


async def test_headers_of_the_way_go_with_every_request(serving: Serving, trusting: ssl.SSLContext) -> None:
    seen: list[Request] = []

    async def handler(request: Request) -> Response:
        seen.append(request)
        return Response()

    async with serving(handler) as port:
        groups = tuple(("Impersonate-Group", name) for name in ("a", "b"))
        client = HttpsClient(f"https://{HOST}:{port}", trusting, reach=ConnectionRoute(headers=groups))
        await client.send(Request("GET", "/"))
        await client.close()
    assert seen[0].headers["impersonate-group"] == "a, b"


async def test_no_servers_goodbye_is_waited_for(server_pair: KeyPair, trusting: ssl.SSLContext) -> None:
    """The server reads no more after a request, as one does that is stopped or far behind."""
    sockets: list[socket.socket] = []
    asked, over = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /watch"):
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        cast(asyncio.Transport, writer.transport).pause_reading()
        sockets.append(writer.get_extra_info("socket"))
        if len(sockets) == 2:
            asked.set()
        await over.wait()
        writer.transport.abort()

    async with await asyncio.start_server(answer, HOST, 0, ssl=server_context(server_pair)) as server:
        client = HttpsClient(f"https://{HOST}:{server.sockets[0].getsockname()[1]}", trusting)
        stream = (await client.send(Request("GET", "/watch"))).body
        await stream.aclose()  # type: ignore[union-attr]  # of any stream of an answer
        given_up = asyncio.create_task(client.send(Request("GET", "/")))
        await asked.wait()
        given_up.cancel()
        await asyncio.wait([given_up])
        await client.close()
        states = [dialed.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] for dialed in sockets]
        over.set()
    assert [state in (CLOSED, CLOSE_WAIT) for state in states] == [True, True]
