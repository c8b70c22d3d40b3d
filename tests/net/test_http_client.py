import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from podfit.net.http_client import HttpsClient, Unreachable
from podfit.net.tls import Authority, client_context
from podfit.net.wire import Handler, Request, Response
from podfit.net.x509 import certificate_identity
from support.wire import HOST

Serving = Callable[[Handler], AbstractAsyncContextManager[int]]


async def test_carries_requests_as_they_are(serving: Serving, trusting: ssl.SSLContext) -> None:
    seen: list[Request] = []

    async def handler(request: Request) -> Response:
        seen.append(request)
        return Response(201, {"X-Thing": "1"}, b"made")

    tokens = iter(["one", "two"])
    async with serving(handler) as port:
        client = HttpsClient(f"https://{HOST}:{port}/", trusting, token=lambda: next(tokens))
        request = Request(
            "PUT", "/a b/c%2Fd/system:x", {"l": ("a=b,c in (d)", "é")}, {"content-type": "text/plain"}, b"\x00body")
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
        with pytest.raises(Unreachable, match="imeout"):
            await (await client.send(Request("GET", "/"), read_timeout=0.1)).read()
        await client.close()
