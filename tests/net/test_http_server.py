import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress

import pytest
import uvloop

from podfit.core.errors import bad_request, conflict
from podfit.net import http_accept, http_connection
from podfit.net.addresses import PortInUse
from podfit.net.authority import Authority
from podfit.net.http_intake import MOST_WAITING
from podfit.net.http_server import BODY_LIMIT, HttpsServer
from podfit.net.http_syntax import HEADER_LIMIT, TARGET_LIMIT
from podfit.net.tls import KeyPair, client_context, server_context
from podfit.net.wire import Handler, Request, Response
from podfit.net.x509 import certificate_identity
from support.eventually import PATIENCE
from support.turns import TURN_MS, worst_ms
from support.wire import HOST, Dial, get

Serving = Callable[[Handler], AbstractAsyncContextManager[int]]
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


async def echo(request: Request) -> Response:
    seen = {
        "method": request.method,
        "path": request.path,
        "query": {k: list(v) for k, v in request.query.items()},
        "accept": request.headers.get("accept", ""),
        "size": len(request.body),
    }
    return Response(200, {"Content-Type": "application/json"}, json.dumps(seen).encode())


async def test_a_request_reaches_the_handler_and_the_connection_is_kept(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        for _ in range(2):
            await wire.send(get("/api/v1/pods?watch=1&fieldSelector=a%3Db&x=1&x=", Accept="application/json"))
            status, headers, body = await wire.answer()
            assert status == 200
            assert headers["content-type"] == "application/json"
            assert headers["date"].endswith("GMT")
            assert json.loads(body) == {
                "method": "GET",
                "path": "/api/v1/pods",
                "accept": "application/json",
                "size": 0,
                "query": {"watch": ["1"], "fieldSelector": ["a=b"], "x": ["1", ""]},
            }


async def test_pipelined_requests_are_answered_in_order(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(get("/1") + get("/2") + get("/3"))
        assert [json.loads((await wire.answer())[2])["path"] for _ in range(3)] == ["/1", "/2", "/3"]


@pytest.mark.parametrize("size", [0, 1, 200_000, BODY_LIMIT])
async def test_bodies_up_to_the_limit(serving: Serving, dial: Dial, size: int) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + b"a" * size)
        status, _, body = await wire.answer()
        assert (status, json.loads(body)["size"]) == (200, size)


async def test_a_client_that_asks_before_it_sends_a_body_is_told_to(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(b"PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(b"body")
        status, _, body = await wire.answer()
        assert (status, json.loads(body)["size"]) == (200, 4)


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_body_over_the_limit_is_413(serving: Serving, dial: Dial, framing: str) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        if framing == "length":
            await wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (BODY_LIMIT + 1))
        else:
            await wire.send(CHUNKED + b"%x\r\n" % (BODY_LIMIT + 1) + b"a" * (BODY_LIMIT + 1))
        status, headers, body = await wire.answer()
        assert status == 413
        assert headers["connection"] == "close"
        assert json.loads(body)["reason"] == "RequestEntityTooLarge"
        assert json.loads(body)["message"] == "Request entity is too large: limit is 3145728"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 400),
        (b"\x00\x01\x02\x03\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (CHUNKED + b"zz\r\n", 400),
        (b"CONNECT host:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (get("/" + "a" * TARGET_LIMIT), 414),
        (get("/", A="a" * (HEADER_LIMIT + 1)), 431),
        (get("/", **{f"A{i}": "1" for i in range(200)}), 431),
    ],
    ids=lambda value: repr(value[:32]) if isinstance(value, bytes) else str(value),
)
async def test_malformed_requests_get_a_status_and_no_traceback(
    serving: Serving, dial: Dial, caplog: pytest.LogCaptureFixture, data: bytes, status: int
) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(data)
        answered, _, body = await asyncio.wait_for(wire.answer(), 5)
        assert (answered, json.loads(body)["code"]) == (status, status)
        assert await wire.reader.read() == b""  # and the connection is closed
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_body_that_stops_coming_is_408(server_pair: KeyPair, dial: Dial) -> None:
    server = HttpsServer(echo, server_context(server_pair), body_timeout=0.05)
    wire = await dial(await server.listen(HOST, 0))
    await wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    status, headers, _ = await asyncio.wait_for(wire.answer(), 5)
    assert (status, headers["connection"]) == (408, "close")
    await server.close(deadline=0.1)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "], ids=["silent", "half a header"])
async def test_who_asks_nothing_is_cut_off(
    server_pair: KeyPair, dial: Dial, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(http_connection, "FIRST_SECONDS", 0.05)
    server = HttpsServer(echo, server_context(server_pair))
    wire = await dial(await server.listen(HOST, 0))
    await wire.send(begun)
    with suppress(ConnectionError):
        assert await asyncio.wait_for(wire.reader.read(), 5) == b""
    await server.close(deadline=0.1)


async def test_a_stream_whose_client_has_left_before_it_began_is_closed(serving: Serving, dial: Dial) -> None:
    entered, gone, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
    read: list[object] = []

    class Body:
        def __aiter__(self) -> AsyncIterator[bytes]:
            return self

        async def __anext__(self) -> bytes:
            read.append(self)
            raise StopAsyncIteration

        async def aclose(self) -> None:
            closed.set()

    async def stream(request: Request) -> Response:
        if request.path == "/other":
            return Response()
        entered.set()
        await gone.wait()
        return Response(200, {}, Body())

    async with serving(stream) as port:
        wire, other = await dial(port), await dial(port)
        await wire.send(get("/"))
        await entered.wait()
        wire.writer.transport.abort()
        for _ in range(3):  # by then the server has seen it
            await other.send(get("/other"))
            await other.answer()
        gone.set()
        await asyncio.wait_for(closed.wait(), 2)
    assert read == []  # nobody is there


@pytest.mark.parametrize(
    "beginning", [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf", CHUNKED + b"5\r\nhal", b"GET / HT"]
)
async def test_a_client_that_leaves_half_way_is_no_news(
    serving: Serving, dial: Dial, caplog: pytest.LogCaptureFixture, beginning: bytes
) -> None:
    async with serving(echo) as port:
        leaver, other = await dial(port), await dial(port)
        await leaver.send(beginning)
        await other.send(get("/"))
        await other.answer()
        leaver.writer.transport.abort()
        await other.send(get("/"))
        await other.answer()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/a/b%2Fc", "/a/b%2Fc"),
        ("/a%20b", "/a b"),
        ("/system%3Anode", "/system:node"),
        ("/100%25", "/100%25"),
        ("/%ff", "/\N{REPLACEMENT CHARACTER}"),
        ("//a//b/", "//a//b/"),
        ("/a/../b", "/a/../b"),
        (f"https://{HOST}/a", "/a"),
        ("/%", "/%25"),
    ],
)
async def test_the_path_is_decoded_but_an_encoded_slash_separates_nothing(
    serving: Serving, dial: Dial, target: str, path: str
) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(get(target))
        assert json.loads((await wire.answer())[2])["path"] == path


async def test_what_escapes_the_handler_becomes_a_status(
    serving: Serving, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: Request) -> Response:
        raise conflict("pods", "web") if request.path == "/conflict" else ZeroDivisionError("secret")

    async with serving(fail) as port:
        wire = await dial(port)
        await wire.send(get("/conflict"))
        assert (await wire.answer())[0] == 409
        assert caplog.records == []
        await wire.send(get("/bug"))
        status, headers, body = await wire.answer()
        assert (status, json.loads(body)["reason"]) == (500, "InternalError")
        assert b"secret" not in body
        assert "connection" not in headers
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_a_stream_is_flushed_chunk_by_chunk_and_closed_when_the_client_leaves(
    serving: Serving, dial: Dial
) -> None:
    more: asyncio.Queue[bytes] = asyncio.Queue()
    closed = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            while True:
                yield await more.get()
        finally:
            closed.set()

    async def stream(request: Request) -> Response:
        return Response(200, {}, body())

    async with serving(stream) as port:
        wire = await dial(port)
        await wire.send(get("/"))
        assert (await wire.head())[0] == 200  # before the first chunk is there
        for chunk in (b"one", b"two"):
            more.put_nowait(chunk)
            assert await wire.chunk() == chunk
        assert not closed.is_set()
        wire.writer.transport.abort()
        await asyncio.wait_for(closed.wait(), 2)


async def test_closing_ends_streams_cleanly_and_lets_requests_finish(
    authority: Authority, server_pair: KeyPair, dial: Dial
) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def forever() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.Event().wait()

    async def handler(request: Request) -> Response:
        if request.path == "/watch":
            return Response(200, {}, forever())
        entered.set()
        await release.wait()
        return Response(200, {}, b"written")

    server = HttpsServer(handler, server_context(server_pair))
    port = await server.listen(HOST, 0)
    watching, writing, idle = [await dial(port) for _ in range(3)]
    await watching.send(get("/watch"))
    await watching.head()
    assert await watching.chunk() == b"first"
    await writing.send(get("/write"))
    await entered.wait()
    closing = asyncio.create_task(server.close(deadline=10))
    assert await watching.chunk() == b""
    assert await idle.reader.read() == b""
    release.set()
    assert (await writing.answer())[2] == b"written"
    await asyncio.wait_for(closing, 5 * PATIENCE)


async def test_closing_cuts_what_outlives_the_deadline(authority: Authority, server_pair: KeyPair, dial: Dial) -> None:
    async def stuck(request: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    server = HttpsServer(stuck, server_context(server_pair))
    wire = await dial(await server.listen(HOST, 0))
    await wire.send(get("/"))
    await asyncio.wait_for(server.close(deadline=0.1), 3)
    assert await wire.reader.read() == b""


def test_on_uvloop_who_is_silent_has_no_tls_and_is_cut_in_the_same_way(
    server_pair: KeyPair, trusting: ssl.SSLContext
) -> None:
    """On the loop of a process that serves: requests are answered, and who is silent has no TLS yet, and is cut."""

    async def serve() -> None:
        server = HttpsServer(echo, server_context(server_pair))
        port = await server.listen(HOST, 0)
        reader, writer = await asyncio.open_connection(HOST, port)
        asking, asked = await asyncio.open_connection(HOST, port, ssl=trusting, server_hostname="localhost")
        asked.write(get("/healthz"))
        assert (await asyncio.wait_for(asking.readline(), 3)).startswith(b"HTTP/1.1 200")
        waiting = server._connections
        assert waiting is not None
        assert (len(waiting.arriving), len(waiting.alive)) == (1, 1)
        await asyncio.wait_for(server.close(), 3)
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 3) == b""
        for stream_writer in (writer, asked):
            stream_writer.transport.abort()
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


async def test_closing_cuts_who_has_not_finished_the_handshake(server_pair: KeyPair) -> None:
    server = HttpsServer(echo, server_context(server_pair))
    reader, writer = await asyncio.open_connection(HOST, await server.listen(HOST, 0))
    await asyncio.sleep(0)  # until it is accepted
    writer.write(b"\x16\x03\x01")  # the start of a greeting
    await asyncio.wait_for(server.close(), 3)
    with suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 3) == b""
    writer.transport.abort()


async def test_a_stream_that_fails_half_way_does_not_look_complete(
    serving: Serving, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"half"
        raise bad_request("no more")

    async def stream(request: Request) -> Response:
        return Response(200, {}, body())

    async with serving(stream) as port:
        wire = await dial(port)
        await wire.send(get("/"))
        await wire.head()
        assert await wire.chunk() == b"half"
        assert await wire.reader.read() == b""  # no last chunk
    assert len(caplog.records) == 1


@pytest.mark.parametrize("size", [10, 5_000_000])
async def test_large_answers_arrive_whole(serving: Serving, dial: Dial, size: int) -> None:
    content = bytes(range(256)) * (size // 256 + 1)

    async def large(request: Request) -> Response:
        return Response(200, {}, content)

    async with serving(large) as port:
        wire = await dial(port)
        for _ in range(2):
            await wire.send(get("/"))
            assert (await wire.answer())[2] == content


async def test_head_has_the_headers_of_get_and_no_body(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(b"HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" + get("/b"))
        _, headers = await wire.head()
        assert int(headers["content-length"]) > 0
        assert json.loads((await wire.answer())[2])["path"] == "/b"


async def test_the_client_certificate_names_the_client(authority: Authority, serving: Serving, dial: Dial) -> None:
    async def who(request: Request) -> Response:
        assert request.peer_certificate is not None
        identity = certificate_identity(request.peer_certificate)
        assert identity is not None
        return Response(200, {}, f"{identity.user} {','.join(identity.groups)} {request.remote}".encode())

    pair = authority.client("admin", user="kubernetes-admin", groups=("system:masters", "dev"))
    context = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    async with serving(who) as port:
        wire = await dial(port, context)
        await wire.send(get("/"))
        assert (await wire.answer())[2] == b"kubernetes-admin system:masters,dev 127.0.0.1"


async def test_a_port_in_use_says_so(serving: Serving, server_pair: KeyPair) -> None:
    async with serving(echo) as port:
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use"):
            await HttpsServer(echo, server_context(server_pair)).listen(HOST, port)


async def test_many_requests_sent_ahead_are_all_answered(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(b"".join(get(f"/{number}") for number in range(3 * MOST_WAITING)))
        paths = [json.loads((await wire.answer())[2])["path"] for _ in range(3 * MOST_WAITING)]
        assert paths == [f"/{number}" for number in range(3 * MOST_WAITING)]


@pytest.mark.parametrize("cut", [1, 10, 40])
async def test_the_beginning_of_a_head_behind_a_request_is_read_on(cut: int, serving: Serving, dial: Dial) -> None:
    """A client sends the next request while the body of the one before is still being read."""
    first, second = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000, get("/second")
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(first + second[:cut])
        assert (await wire.answer())[0] == 200
        await wire.send(second[cut:])
        answer = await asyncio.wait_for(wire.answer(), 5)
        assert json.loads(answer[2])["path"] == "/second"


async def test_an_upgrade_is_answered_as_a_request_and_ends_the_connection(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(get("/exec", Connection="Upgrade", Upgrade="websocket") + b"\x81\x00 not http")
        status, headers, body = await wire.answer()
        assert (status, headers["connection"], json.loads(body)["path"]) == (200, "close", "/exec")
        assert await wire.reader.read() == b""


async def test_a_body_that_breaks_later_is_400(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire, other = await dial(port), await dial(port)
        await wire.send(CHUNKED + b"3\r\nabc\r\n")
        await other.send(get("/"))  # by then the server waits for the rest
        await other.answer()
        await wire.send(b"zz\r\n")
        status, headers, _ = await asyncio.wait_for(wire.answer(), 5)
        assert (status, headers["connection"]) == (400, "close")


async def test_an_answer_cannot_write_headers_of_its_own(
    serving: Serving, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async def split(request: Request) -> Response:
        return Response(200, {"warning": "a\r\nset-cookie: b", "Content-Length": "9"}, b"x")

    async with serving(split) as port:
        wire = await dial(port)
        await wire.send(get("/"))
        status, headers, _ = await wire.answer()
        assert (status, "set-cookie" in headers) == (500, False)
    assert len(caplog.records) == 1


async def test_an_idle_connection_is_closed(server_pair: KeyPair, dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "FIRST_SECONDS", 0.05)
    monkeypatch.setattr(http_connection, "IDLE_SECONDS", 0.05)
    server = HttpsServer(echo, server_context(server_pair))
    wire = await dial(await server.listen(HOST, 0))
    await wire.send(get("/"))
    await wire.answer()
    assert await asyncio.wait_for(wire.reader.read(), 5) == b""
    await server.close(deadline=0.1)


@pytest.mark.parametrize("trailers", [b"X-First: 1\r\nImpersonate-User: mallory\r\n", b"A: b\r\n", b"Host: probe\r\n"])
@pytest.mark.parametrize("body", [b"3\r\nabc\r\n", b"", b"1\r\na\r\n" * 20_000])
async def test_trailers_are_refused(serving: Serving, dial: Dial, trailers: bytes, body: bytes) -> None:
    """The parser would give the last of them to the next request as a header."""
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(CHUNKED + body + b"0\r\n" + trailers + b"\r\n")
        status, headers, answer = await wire.answer()
        assert (status, headers["connection"]) == (400, "close")
        assert json.loads(answer)["message"] == "the request body cannot be read: trailers are not supported"


async def test_headers_are_bounded_all_together(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(get("/", **{f"X-{number}": "a" * 30_000 for number in range(8)}))
        assert (await wire.answer())[0] == 200
        await wire.send(get("/", **{f"X-{number}": "a" * 30_000 for number in range(9)}))
        status, headers, _ = await wire.answer()
        assert (status, headers["connection"]) == (431, "close")


async def test_trailers_that_come_later_are_refused(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        for part in (CHUNKED, b"3\r\nabc\r\n", b"0\r\nA: b\r\n", b"\r\n"):
            await wire.send(part)
            await asyncio.sleep(0)
        assert (await wire.answer())[0] == 400


async def test_a_chunked_body_without_trailers_keeps_the_connection(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        for _ in range(3):
            await wire.send(CHUNKED + b"3\r\nabc\r\n0\r\n\r\n")
            status, headers, body = await wire.answer()
            assert (status, headers.get("connection"), json.loads(body)["size"]) == (200, None, 3)
            await wire.send(get("/second"))
            status, _, body = await wire.answer()
            assert (status, json.loads(body)["path"]) == (200, "/second")


@pytest.mark.parametrize("behind", [b"GET /second HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /second HT", b"\x00"])
async def test_what_is_behind_a_chunked_body_in_one_write_ends_the_connection(
    serving: Serving, dial: Dial, behind: bytes
) -> None:
    """Nobody could tell whether its first header was a trailer."""
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(CHUNKED + b"0\r\nImpersonate-User: mallory\r\n\r\n" + behind)
        status, headers, body = await wire.answer()
        assert (status, headers["connection"], json.loads(body)["path"]) == (200, "close", "/")
        assert await wire.reader.read() == b""


async def test_the_last_request_is_answered_whatever_is_behind_it(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire = await dial(port)
        await wire.send(get("/first", Connection="close") + get("/second") + b"\x00\x01")
        status, headers, body = await wire.answer()
        assert (status, headers["connection"], json.loads(body)["path"]) == (200, "close", "/first")
        assert await wire.reader.read() == b""


async def test_others_have_their_turn_between_requests_sent_ahead(serving: Serving, dial: Dial) -> None:
    async with serving(echo) as port:
        wire, other = await dial(port), await dial(port)

        async def sent() -> None:
            await wire.send(get("/") * 1500)
            await other.send(get("/other"))
            assert (await other.answer())[0] == 200
            assert [(await wire.answer())[0] for _ in range(1500)] == [200] * 1500

        assert await worst_ms(sent) < TURN_MS


# ---------------------------------------------------------------- clients that take their time, and too many of them


async def test_who_does_not_read_an_answer_is_cut_off(
    server_pair: KeyPair, trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "STALLED_SECONDS", 0.05)

    async def large(_: Request) -> Response:
        return Response(200, {}, bytes(32 * 2**20))

    server = HttpsServer(large, server_context(server_pair))
    port = await server.listen(HOST, 0)
    lost = asyncio.Event()

    class Lost(http_connection.Connection):
        def connection_lost(self, exc: BaseException | None) -> None:
            super().connection_lost(exc)
            lost.set()

    monkeypatch.setattr(http_accept, "Connection", Lost)
    _reader, writer = await asyncio.open_connection(HOST, port, ssl=trusting, limit=1024)
    writer.write(get("/"))
    await asyncio.wait_for(lost.wait(), 10)  # nothing is read here beyond the limit
    writer.transport.abort()
    await server.close(deadline=0.1)


async def test_who_begins_no_handshake_is_cut_off(server_pair: KeyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_accept, "HANDSHAKE_SECONDS", 0.05)
    server = HttpsServer(echo, server_context(server_pair))
    reader, writer = await asyncio.open_connection(HOST, await server.listen(HOST, 0))
    with suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.transport.abort()
    await server.close(deadline=0.1)


async def test_of_many_that_say_nothing_the_oldest_make_room(
    server_pair: KeyPair, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_accept, "MOST_ARRIVING", 3)
    server = HttpsServer(echo, server_context(server_pair))
    port = await server.listen(HOST, 0)
    silent = [await asyncio.open_connection(HOST, port) for _ in range(5)]
    wire = await dial(port)
    await wire.send(get("/"))
    assert (await wire.answer())[0] == 200
    for reader, _ in silent[:2]:
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
    for _, writer in silent:
        writer.transport.abort()
    await server.close(deadline=0.1)


async def test_of_too_many_connections_the_longest_idle_makes_room(
    server_pair: KeyPair, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody who is being answered is cut; when all are, the new one is refused."""
    monkeypatch.setattr(http_accept, "MOST_CONNECTIONS", 3)
    asked, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def slow(request: Request) -> Response:
        if request.path == "/slow":
            asked.release()
            await go_on.wait()
        return Response(200, {}, b"x")

    server = HttpsServer(slow, server_context(server_pair))
    port = await server.listen(HOST, 0)
    busy, idle, later = [await dial(port) for _ in range(3)]
    await busy.send(get("/slow"))
    await asyncio.wait_for(asked.acquire(), 5)
    for wire in (idle, later):
        await wire.send(get("/"))
        assert (await wire.answer())[0] == 200
    newest = await dial(port)
    await newest.send(get("/"))
    assert (await newest.answer())[0] == 200
    assert await asyncio.wait_for(idle.reader.read(), 5) == b""
    await later.send(get("/"))
    assert (await later.answer())[0] == 200
    for wire in (later, newest):
        await wire.send(get("/slow"))
        await asyncio.wait_for(asked.acquire(), 5)
    with pytest.raises(ConnectionError):
        await dial(port)
    go_on.set()
    assert (await busy.answer())[0] == 200
    await server.close(deadline=0.1)
