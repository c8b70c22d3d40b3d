"""The server's side of a WebSocket, alone and behind the HTTPS server."""

import asyncio
import os

import pytest

from net.test_http_server import Serving
from podfit.core.errors import ApiError
from podfit.net.raw_streams import join
from podfit.net.websocket import MOST_MESSAGE, PART, WebSocket, shake_hands
from podfit.net.wire import Duplex, Request, Response
from support.turns import worst_ms
from support.websocket import HANDSHAKE, Pipe, frame, frames, received
from support.wire import Dial, get


def request(protocols: str = "", **headers: str) -> Request:
    named = {"sec-websocket-protocol": protocols} if protocols else {}
    return Request("GET", "/", headers={**HANDSHAKE, **named, **headers})


def test_the_handshake() -> None:
    hands = shake_hands(request("v4, v5"), ("v5", "v4"))
    assert hands.headers == {
        "upgrade": "websocket",
        "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",  # RFC 6455, 1.3
        "sec-websocket-protocol": "v4",
    }
    assert shake_hands(request(), ("",)).protocol == ""


@pytest.mark.parametrize(
    "asked", [request("v6"), request(), request("v5", upgrade="h2c"), request("v5", **{"sec-websocket-version": "8"})]
)
def test_what_is_no_handshake(asked: Request) -> None:
    with pytest.raises(ApiError) as refused:
        shake_hands(asked, ("v5",))
    assert refused.value.code == 400


async def test_messages_in_pieces_between_pings() -> None:
    pipe = Pipe()
    socket = WebSocket(pipe)
    pipe.give(frame(b"he", final=False), frame(b"?", code=9), frame(b"llo", code=0), frame(b"x" * 70_000))
    assert await received(socket) == b"hello"
    assert await received(socket) == b"x" * 70_000
    await socket.send(b"a", b"b" * 200)
    assert pipe.frames == [(10, b"?"), (2, b"a" + b"b" * 200)]
    pipe.give(frame(b"\x03\xe8bye", code=8))
    assert await received(socket) is None
    assert pipe.frames[2:] == [(8, b"\x03\xe8")]
    with pytest.raises(ConnectionError):
        await socket.send(b"late")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x82\x01x", 1002),  # not masked
        (frame(b"x", code=3), 1002),
        (frame(b"x", code=0), 1002),
        (frame(b"a", final=False) + frame(b"b"), 1002),
        (frame(b"x" * 126, code=9), 1002),
        (b"\x82\xff" + (MOST_MESSAGE + 1).to_bytes(8, "big"), 1009),
    ],
    ids=["not masked", "no such code", "nothing to go on with", "begun again", "a long ping", "too long"],
)
async def test_who_breaks_the_protocol_is_told(sent: bytes, code: int) -> None:
    pipe = Pipe()
    pipe.give(sent)
    assert await received(WebSocket(pipe)) is None
    assert pipe.frames == [(8, code.to_bytes(2, "big"))]


async def test_a_client_that_leaves() -> None:
    pipe = Pipe()
    pipe.give()
    assert await received(WebSocket(pipe)) is None
    assert pipe.sent == b""


async def test_no_message_is_held_as_a_whole() -> None:
    """A message of 4 MiB, which a thousand sessions may begin and not end, is passed on as it comes."""
    pipe = Pipe()
    socket = WebSocket(pipe)
    whole = os.urandom(MOST_MESSAGE)
    pipe.give(frame(whole[:1_000_001], final=False), frame(whole[1_000_001:], code=0))
    parts = [await socket.part()]
    while parts[-1] is not None and not parts[-1].last:
        parts.append(await socket.part())
    assert b"".join(part.data for part in parts if part) == whole
    assert max(len(part.data) for part in parts if part) == PART
    assert [part.first for part in parts if part] == [True] + [False] * (len(parts) - 1)


@pytest.mark.parametrize("flood", [frame(b"", final=False, code=0), frame(b"", code=9)], ids=["nothing", "pings"])
async def test_thousands_of_frames_at_once_hold_nobody_up(flood: bytes) -> None:
    async def flooded() -> None:
        pipe = Pipe()
        pipe.give(frame(b"x", final=False) + flood * 20_000 + frame(b"y", code=0))
        assert await received(WebSocket(pipe)) == b"xy"

    assert await worst_ms(flooded, most=50) < 50


async def test_messages_in_frames_are_as_large_together_as_one() -> None:
    pipe = Pipe()
    begun = frame(b"x", final=False) + frame(bytes(MOST_MESSAGE - 2), code=0, final=False)
    pipe.give(begun, frame(b"x", code=0), begun, frame(b"xx", code=0))
    socket = WebSocket(pipe)
    assert len(await received(socket) or b"") == MOST_MESSAGE
    assert await received(socket) is None
    assert pipe.frames == [(8, b"\x03\xf1")]


async def echoing(asked: Request) -> Response:
    hands = shake_hands(asked, ("echo",))

    async def serve(duplex: Duplex) -> None:
        socket = WebSocket(duplex)
        while message := await received(socket):
            await socket.send(message)

    return Response(101, hands.headers, upgrade=serve)


async def test_a_connection_of_the_server_changes_its_protocol(serving: Serving, dial: Dial) -> None:
    asked = get("/", **{**HANDSHAKE, "Sec-WebSocket-Protocol": "echo"})
    async with serving(echoing) as port:
        wire = await dial(port)
        await wire.send(asked + frame(b"sent ahead"))
        head = await wire.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert b"connection: Upgrade\r\n" in head
        assert frames(await wire.reader.readexactly(12)) == [(2, b"sent ahead")]
        large = b"y" * 300_000
        await wire.send(frame(large))
        assert frames(await wire.reader.readexactly(len(large) + 10)) == [(2, large)]
        await wire.send(frame(b"\x03\xe8", code=8))
        assert frames(await wire.reader.read()) == [(8, b"\x03\xe8")], "and the connection ends"


async def test_what_the_client_did_not_ask_for_is_refused(serving: Serving, dial: Dial) -> None:
    async def always(_: Request) -> Response:
        return Response(101, {}, upgrade=lambda duplex: join(duplex, duplex))

    async with serving(always) as port:
        wire = await dial(port)
        await wire.send(get("/"))
        assert (await wire.answer())[0] == 400


async def test_a_server_that_stops_ends_what_it_carries(serving: Serving, dial: Dial) -> None:
    ended = asyncio.Event()

    async def waiting(asked: Request) -> Response:
        async def serve(duplex: Duplex) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        return Response(101, shake_hands(asked, ("echo",)).headers, upgrade=serve)

    async with serving(waiting) as port:
        wire = await dial(port)
        await wire.send(get("/", **{**HANDSHAKE, "Sec-WebSocket-Protocol": "echo"}))
        await wire.reader.readuntil(b"\r\n\r\n")
    await ended.wait()


async def test_an_upgrade_that_the_connection_does_not_ask_for_is_none(serving: Serving, dial: Dial) -> None:
    """RFC 9110, 7.8. What a handler would do for it, such as to begin a command, is not begun."""
    asked: list[Request] = []

    async def seen(request: Request) -> Response:
        asked.append(request)
        return Response(200)

    async with serving(seen) as port:
        wire = await dial(port)
        await wire.send(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n")
        assert (await wire.answer())[0] == 200
        await wire.send(get("/", **HANDSHAKE))
        assert (await wire.answer())[0] == 200
    assert ["upgrade" in request.headers for request in asked] == [False, True]


async def test_a_protocol_that_nobody_here_speaks_reaches_the_handler_which_refuses_it(
    serving: Serving, dial: Dial
) -> None:
    """kubectl repeats by SPDY what was refused to a WebSocket, and shows the answer to that."""
    asked: list[Request] = []

    async def refuses(request: Request) -> Response:
        asked.append(request)
        return Response(501, {}, b"nothing runs here")

    async with serving(refuses) as port:
        wire = await dial(port)
        await wire.send(
            b"POST /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n"
        )
        code, _, body = await wire.answer()
    assert (code, body, asked[0].headers["upgrade"]) == (501, b"nothing runs here", "SPDY/3.1")
