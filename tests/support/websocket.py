"""The client's side of a WebSocket, over a pipe in memory or any `send` and `receive`."""

import asyncio
import os

from podfit.net.websocket import WebSocket
from support.eventually import PATIENCE

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HANDSHAKE = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": KEY, "sec-websocket-version": "13"}


def frame(data: bytes, *, code: int = 2, final: bool = True) -> bytes:
    """As a client sends it: masked."""
    mask, size = os.urandom(4), len(data)
    length = bytes((size,)) if size < 126 else b"\x7e" + size.to_bytes(2, "big") if size < 65536 else b""
    length = length or b"\x7f" + size.to_bytes(8, "big")
    head = bytes((0x80 * final | code, length[0] | 0x80)) + length[1:]
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


def frames(data: bytes) -> list[tuple[int, bytes]]:
    """Code and content of what a server sent."""
    found = []
    while data:
        size, start = data[1], 2
        if size == 126:
            size, start = int.from_bytes(data[2:4], "big"), 4
        elif size == 127:
            size, start = int.from_bytes(data[2:10], "big"), 10
        found.append((data[0] & 0x0F, data[start : start + size]))
        data = data[start + size :]
    return found


class Pipe:
    """The server's end of a connection whose other end a test holds; `full` is a client that does not read, and
    `waited_for` tells that the server waits until it does.
    """

    def __init__(self) -> None:
        self._there: asyncio.Queue[bytes] = asyncio.Queue()
        self.sent = b""
        self.full = False
        self.waited_for = asyncio.Event()
        self._room = asyncio.Event()
        self._wrote = asyncio.Event()

    @property
    def ready(self) -> bool:
        return not self.full

    def write(self, data: bytes) -> None:
        self.sent += data
        self._wrote.set()

    async def until(self, end: bytes) -> None:
        """It was sent."""
        async with asyncio.timeout(10 * PATIENCE):
            while end not in self.sent:
                self._wrote.clear()
                await self._wrote.wait()

    async def drained(self) -> None:
        while self.full:
            self.waited_for.set()
            await self._room.wait()
            self._room.clear()

    async def read(self) -> bytes:
        return await self._there.get()

    def give(self, *data: bytes) -> None:
        """What the client sends; nothing at all is its leaving."""
        self._there.put_nowait(b"".join(data))

    @property
    def frames(self) -> list[tuple[int, bytes]]:
        return frames(self.sent)


async def received(socket: WebSocket) -> bytes | None:
    """A whole message; None when the client has closed or left, or broke the protocol."""
    message = b""
    while (part := await socket.part()) is not None:
        message += part.data
        if part.last:
            return message
    return None
