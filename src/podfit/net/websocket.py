"""The server's side of a WebSocket (RFC 6455) over a connection that has changed its protocol.

Messages are bounded, pings are answered, and what is sent is never masked. Extensions are not offered.
"""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from podfit.core.errors import bad_request
from podfit.net.raw_streams import until_one_is_over
from podfit.net.streams import close
from podfit.net.wire import Body, Duplex, Request

BASE64_READER = "base64.binary.k8s.io"
READERS = ("", "binary.k8s.io", BASE64_READER)
"""Subprotocols for what is only read, such as a log; none at all is binary."""
MOST_MESSAGE = 4 * 1024 * 1024
PART = 64 * 1024
"""Bytes of a message that are held at once."""
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUED, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_MOST_CONTROL = 125
_AT_ONCE = 64  # frames that are read in one turn of the event loop
NORMAL, PROTOCOL_ERROR, TOO_LARGE = 1000, 1002, 1009


class _Broken(Exception):
    """The client does not keep to the protocol; the code is told to it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Handshake(msgspec.Struct, frozen=True):
    """The headers of the 101, and the subprotocol that was agreed on."""

    headers: dict[str, str]
    protocol: str


def asks_for_websocket(headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers, whose names are in lower case, is to become a WebSocket."""
    return "upgrade" in headers and headers["upgrade"].lower() == "websocket"


def is_websocket(request: Request) -> bool:
    """Whether the client asks for one."""
    return asks_for_websocket(request.headers)


def shake_hands(request: Request, protocols: Sequence[str]) -> Handshake:
    """`protocols` are those that this side speaks; the client's order counts. An empty one stands for none at all.

    Raises ApiError 400 for what is no WebSocket, or one whose subprotocols nobody here speaks.
    """
    key = request.headers.get("sec-websocket-key", "")
    if not is_websocket(request) or not key or request.headers.get("sec-websocket-version", "13") != "13":
        raise bad_request("unable to upgrade: not a WebSocket handshake of version 13")
    wanted = [part.strip() for part in request.headers.get("sec-websocket-protocol", "").split(",") if part.strip()]
    chosen = next((protocol for protocol in wanted if protocol in protocols), None)
    if chosen is None and (wanted or "" not in protocols):
        asked = " ".join(wanted)
        raise bad_request(f"unable to upgrade: the client asks for [{asked}], spoken here: [{' '.join(protocols)}]")
    digest = hashlib.sha1(key.encode("latin-1", "replace") + _GUID, usedforsecurity=False).digest()
    headers = {"upgrade": "websocket", "sec-websocket-accept": base64.b64encode(digest).decode()}
    if chosen:
        headers["sec-websocket-protocol"] = chosen
    return Handshake(headers, chosen or "")


class Part(msgspec.Struct, frozen=True):
    """A part of a message, at most PART bytes: no message is held as a whole. `first` and `last` may be one."""

    data: bytes
    first: bool
    last: bool


class _Frame(msgspec.Struct):
    """What is known of a frame that is being read; `first` and `final` are its places in a message."""

    code: int
    first: bool
    final: bool
    mask: bytes
    left: int


class WebSocket:
    def __init__(self, duplex: Duplex) -> None:
        self._duplex = duplex
        self._buffer = bytearray()
        self._closed = False
        self._frame: _Frame | None = None
        self._frames = 0
        self._size = -1  # of the message so far; -1 between two

    async def part(self) -> Part | None:
        """The next part of a message; None when the client has closed or left, or broke the protocol."""
        try:
            while (frame := self._frame or await self._next_frame()) is not None:
                if frame.code < _CLOSE:
                    return await self._some(frame)
                self._frame = None
                data = _unmasked(await self._take(frame.left), frame.mask)
                if frame.code == _CLOSE:
                    await self._close(data[:2] or NORMAL.to_bytes(2, "big"))
                    return None
                if frame.code == _PING:
                    await self._send(_PONG, data)
        except _Broken as error:
            await self._close(error.code.to_bytes(2, "big"))
        except EOFError:
            self._closed = True
        return None

    async def send(self, *parts: bytes, text: bool = False) -> None:
        """One message of these parts, once the client has taken most of what it was sent before. Raises
        ConnectionError when it has left.
        """
        await self._send(_TEXT if text else _BINARY, *parts)

    async def close(self, code: int = NORMAL) -> None:
        """Say goodbye. The connection ends with whoever serves it."""
        await self._close(code.to_bytes(2, "big"))

    # ------------------------------------------------------------------ frames

    async def _close(self, reason: bytes) -> None:
        if self._closed:
            return
        try:
            await self._send(_CLOSE, reason)
        except ConnectionError:
            return
        finally:
            self._closed = True

    async def _send(self, code: int, *parts: bytes) -> None:
        if self._closed:
            raise ConnectionResetError("the WebSocket is closed")
        size = sum(map(len, parts))
        if size < 126:
            head = bytes((0x80 | code, size))
        elif size < 1 << 16:
            head = bytes((0x80 | code, 126)) + size.to_bytes(2, "big")
        else:
            head = bytes((0x80 | code, 127)) + size.to_bytes(8, "big")
        self._duplex.write(b"".join((head, *parts)))
        if not self._duplex.ready:
            await self._duplex.drained()

    async def _next_frame(self) -> _Frame:
        """Raises EOFError, _Broken."""
        self._frames += 1
        if self._frames % _AT_ONCE == 0:
            await asyncio.sleep(0)  # what has come at once may be thousands of frames without a byte
        first, second = await self._take(2)
        code, size, final = first & 0x0F, second & 0x7F, bool(first & 0x80)
        if first & 0x70 or not second & 0x80 or code not in (_CONTINUED, _TEXT, _BINARY, _CLOSE, _PING, _PONG):
            raise _Broken(PROTOCOL_ERROR)
        if code >= _CLOSE and (size > _MOST_CONTROL or not final):
            raise _Broken(PROTOCOL_ERROR)
        if size == 126:
            size = int.from_bytes(await self._take(2), "big")
        elif size == 127:
            size = int.from_bytes(await self._take(8), "big")
        begins = code in (_TEXT, _BINARY)
        if code < _CLOSE:
            if begins != (self._size < 0):
                raise _Broken(PROTOCOL_ERROR)
            self._size = max(0, self._size) + size
            if self._size > MOST_MESSAGE:
                raise _Broken(TOO_LARGE)
        self._frame = _Frame(code, begins, final, await self._take(4), size)
        return self._frame

    async def _some(self, frame: _Frame) -> Part:
        """What has come of a frame."""
        size = min(frame.left, PART)
        if size and not self._buffer:
            self._buffer += await self._more()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        part = Part(_unmasked(data, frame.mask), frame.first, frame.final and len(data) == frame.left)
        turned = len(data) % 4
        frame.mask, frame.left, frame.first = frame.mask[turned:] + frame.mask[:turned], frame.left - len(data), False
        if not frame.left:
            self._frame = None
            self._size = -1 if frame.final else self._size
        return part

    async def _more(self) -> bytes:
        data = await self._duplex.read()
        if not data:
            raise EOFError
        return data

    async def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._buffer += await self._more()
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


async def sent_as_messages(body: Body, protocol: str, duplex: Duplex) -> None:
    """A stream of an answer, for a client that reads it over a WebSocket: `protocol` is one of READERS."""
    socket = WebSocket(duplex)

    async def listen() -> None:
        while await socket.part() is not None:
            continue

    async def tell() -> None:
        pieces = _only(body) if isinstance(body, bytes) else body
        try:
            async for piece in pieces:
                as_text = protocol == BASE64_READER
                await socket.send(base64.b64encode(piece) if as_text else piece, text=as_text)
        except ConnectionError:
            return

    try:
        await until_one_is_over(listen(), tell())
        await socket.close()
    finally:
        if not isinstance(body, bytes):
            await close(body)


async def _only(data: bytes) -> AsyncIterator[bytes]:
    if data:
        yield data


def _unmasked(data: bytes, mask: bytes) -> bytes:
    """Unmasks it as one large number: byte by byte it would take a hundred times as long."""
    size = len(data)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
