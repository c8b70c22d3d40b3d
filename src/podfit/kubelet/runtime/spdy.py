"""A SPDY/3.1 client, as far as a runtime's streaming server needs one.

This side opens streams, each with the header `streamtype`, and both send data on them; `FIN` ends one direction of a
stream. That is what a WebSocket to a runtime cannot do: say that stdin is over while output goes on. Headers that the
server sends say nothing of interest, so they are not decompressed. There is no flow control but the connection's own:
the servers (moby/spdystream) know no other.

    control frame    1 | version 3 (15 bits) | type (16) | flags (8) | length (24) | ...
    data frame       0 | stream (31)                     | flags (8) | length (24) | data
"""

import asyncio
import struct
import zlib
from collections.abc import Mapping

import msgspec

from podfit.net.raw_streams import Dialled

SYN_STREAM, RST_STREAM, PING, GOAWAY = 1, 3, 6, 7
FIN = 1
PIECE = 64 * 1024
MOST_CONTROL = 64 * 1024
_CONTROL = 0x80030000


class Arrived(msgspec.Struct, frozen=True):
    """Data of a stream; `over`: nothing more comes on it."""

    stream: int
    data: bytes
    over: bool


class Spdy:
    """The client's side of one connection. `close` it."""

    def __init__(self, dialled: Dialled) -> None:
        self._dialled = dialled
        self._reader = dialled.reader
        self._headers = zlib.compressobj()
        self._next = 1
        self._left = 0  # of a data frame that has begun
        self._stream, self._last = 0, False

    def open(self, headers: Mapping[str, str]) -> int:
        """A new stream; answers its number."""
        number, self._next = self._next, self._next + 2
        pairs = b"".join(_sized(name.encode()) + _sized(value.encode()) for name, value in headers.items())
        block = self._headers.compress(struct.pack(">I", len(headers)) + pairs) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIH", number, 0, 0) + block
        self._dialled.write(struct.pack(">II", _CONTROL | SYN_STREAM, len(body)) + body)
        return number

    async def send(self, stream: int, data: bytes, *, over: bool = False) -> None:
        """Raises ConnectionError when the server has left."""
        for start in range(0, len(data), PIECE) or (0,):
            piece = data[start : start + PIECE]
            last = over and start + PIECE >= len(data)
            self._dialled.write(struct.pack(">II", stream, (FIN if last else 0) << 24 | len(piece)) + piece)
            if not self._dialled.ready:
                await self._dialled.drained()

    async def receive(self) -> Arrived | None:
        """What comes next on any stream; None when the server has ended the connection."""
        try:
            while not self._left:
                first, second = struct.unpack(">II", await self._reader.readexactly(8))
                flags, size = second >> 24, second & 0xFFFFFF
                if first & 0x80000000:
                    ended = await self._control(first & 0xFFFF, flags, size)
                    if ended is not None:
                        return ended
                    continue
                self._stream, self._left, self._last = first, size, bool(flags & FIN)
                if not size:
                    return Arrived(first, b"", self._last)
            data = await self._reader.read(min(self._left, PIECE))
        except (asyncio.IncompleteReadError, OSError):
            return None
        if not data:
            return None
        self._left -= len(data)
        return Arrived(self._stream, data, self._last and not self._left)

    def close(self) -> None:
        self._dialled.close()

    async def _control(self, kind: int, flags: int, size: int) -> Arrived | None:
        """Raises OSError for one that is too large, and when the server says goodbye."""
        if size > MOST_CONTROL:
            raise OSError("the runtime sent a control frame that is too large")
        body = await self._reader.readexactly(size)
        if kind == PING and size == 4 and body[3] & 1 == 0:  # even numbers are the server's own
            self._dialled.write(struct.pack(">II", _CONTROL | PING, 4) + body)
            if not self._dialled.ready:
                await self._dialled.drained()
        if kind == GOAWAY:
            raise OSError("the runtime has ended the connection")
        if kind == RST_STREAM and size >= 4:
            return Arrived(int.from_bytes(body[:4], "big"), b"", over=True)
        return None


def _sized(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text
