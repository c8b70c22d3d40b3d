"""The writing half of a connection: response heads, bodies in slices, streams in chunks.

A small answer is one write, which is one TLS record and one system call. What is streamed goes straight from whoever
has something to tell into the socket, without a queue or a task between the two, for as long as the client keeps up
(`ready`); after that it is the teller's to wait (`drained`) or to give up.
"""

import asyncio
from functools import lru_cache

from podfit.net.http_syntax import http_date, phrase
from podfit.net.wire import Response

SLICE = 64 * 1024
"""Bytes of a large body that reach TLS at once: a huge write costs more than twice the CPU, and TLS keeps its room."""
TURN = 1024 * 1024
"""Bytes of one stream after which the loop has a turn: a client that keeps up, or one whose leaving only the loop can
tell, would hold it for as long as there is something to send."""
ONE_WRITE = 32 * 1024  # below this, joining head and body costs less than a second write
LONGEST_KEPT = 4096
"""Letters of an answer's headers; longer ones are written anew every time."""
OURS = frozenset(("connection", "content-length", "date", "transfer-encoding"))  # what another server said of its own
LAST_CHUNK = b"0\r\n\r\n"


class Outlet:
    """Raises ConnectionResetError, where it can wait, when the client has left."""

    __slots__ = ("_full", "_in_turn", "_loop", "_transport", "_waiter", "chunked", "written")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.chunked = False
        self.written = 0
        """Bytes since the connection looked how much of it has left."""
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._full = False
        self._in_turn = 0
        self._waiter: asyncio.Future[None] | None = None

    def opened(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def lost(self) -> None:
        self._transport = None
        self._wake()

    def pause(self) -> None:
        self._full = True

    def resume(self) -> None:
        self._full = False
        self._wake()

    @property
    def ready(self) -> bool:
        """Whether the client is there and has room for more, and others have had their turn."""
        return self._in_turn < TURN and self.has_room

    @property
    def has_room(self) -> bool:
        """Whether the client is there and takes what is written."""
        return not self._full and not self._left

    @property
    def _left(self) -> bool:
        """Also when the loop has not yet had a turn to say so, which an endless stream need not give it."""
        return self._transport is None or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """A piece of the stream. What nobody will read any more is dropped."""
        if self._transport is not None and data:
            self.written += len(data)
            self._in_turn += len(data)
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data)

    async def drained(self) -> None:
        """Wait until there is room for more."""
        if self._in_turn >= TURN:
            self._in_turn = 0
            await asyncio.sleep(0)
        while self._full and self._transport is not None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._left:
            raise ConnectionResetError("the client has left")

    async def send(self, response: Response, method: str, *, chunked: bool, keep: bool) -> None:
        """The head, and the body when it is no stream; `chunked` says how a stream is framed."""
        body, transport = response.body, self._transport
        if transport is None:
            raise ConnectionResetError("the client has left")
        if not isinstance(body, bytes):
            self.chunked = chunked
            framing = "\r\ntransfer-encoding: chunked" if chunked else ""
            transport.write(_head(response, framing, keep=keep))
            return
        length = "" if not body and response.status in (204, 304) else f"\r\ncontent-length: {len(body)}"
        head = _head(response, length, keep=keep)
        if method == "HEAD" or not body:
            transport.write(head)
            return
        self.written += len(body)
        if len(body) <= ONE_WRITE:
            transport.write(head + body)
        else:
            transport.write(head)
            await self._slices(memoryview(body))

    async def _slices(self, body: memoryview) -> None:
        for start in range(0, len(body), SLICE):
            if not self.ready:
                await self.drained()
            assert self._transport is not None
            self._in_turn += SLICE
            self._transport.write(body[start : start + SLICE])

    def change(self, response: Response) -> None:
        """The head of a 101: what follows is another protocol's."""
        if self._transport is not None:
            self.chunked = False
            self._transport.write(_head(response, "\r\nconnection: Upgrade", keep=True))

    def end(self) -> None:
        """Say that the stream is complete."""
        if self._transport is not None and self.chunked:
            self._transport.write(LAST_CHUNK)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _head(response: Response, framing: str, *, keep: bool) -> bytes:
    headers = response.headers
    lines = _made if sum(map(len, headers.values())) > LONGEST_KEPT else _lines
    start = lines(response.status, tuple(headers.items()))
    close = "" if keep else "\r\nconnection: close"
    return f"{start}{framing}{close}\r\ndate: {http_date()}\r\n\r\n".encode()


@lru_cache(256)
def _lines(status: int, headers: tuple[tuple[str, str], ...]) -> str:
    return _made(status, headers)


def _made(status: int, headers: tuple[tuple[str, str], ...]) -> str:
    """Status and headers. Raises ValueError for a header that would end before its time."""
    told = ((name.lower(), value) for name, value in headers)
    lines = [f"HTTP/1.1 {status} {phrase(status)}", *(f"{name}: {value}" for name, value in told if name not in OURS)]
    if any(character in line for line in lines for character in "\r\n\0"):
        raise ValueError("a header of the answer has a line break in it")
    return "\r\n".join(lines)
