"""A runtime's streaming server: SPDY/3.1 with `v4.channel.k8s.io`, or raw bytes for port-forward.

server.echoes     what comes on stdin goes to stdout; its end is the end of the process
server.status     what is said on the error stream at the end
server.cut()      it is killed
"""

import asyncio
import json
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PING = 6
SUCCESS: dict[str, object] = {"status": "Success"}


class FakeStreaming:
    def __init__(self) -> None:
        self.status: dict[str, object] = SUCCESS
        self.asked: list[bytes] = []
        self.streams: dict[int, str] = {}
        self.resized: list[bytes] = []
        self.open = 0
        self.idle = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/exec/token"

    async def stop(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def end(self) -> None:
        """The process of the last session ends by itself."""
        writer = next(iter(self._writers))
        self._data(writer, "error", json.dumps(self.status).encode(), over=True)
        await writer.drain()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self._writers.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head)
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
            if b"portforward" in head:
                while data := await reader.read(1000):
                    writer.write(data.upper())
            else:
                await self._spdy(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self.open -= 1
            if not self.open:
                self.idle.set()
            self._writers.discard(writer)
            writer.close()

    async def _spdy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers = zlib.decompressobj()
        while True:
            first, second = struct.unpack(">II", await reader.readexactly(8))
            body = await reader.readexactly(second & 0xFFFFFF)
            if first >> 31 and first & 0xFFFF == PING:
                continue
            if first >> 31:
                number = int.from_bytes(body[:4], "big")
                self.streams[number] = headers.decompress(body[10:])[8 + len("streamtype") + 4 :].decode()
                writer.write(struct.pack(">IIHI", 0x80030006, 4, 0, 2)[:-6] + struct.pack(">I", 2))  # a ping
                continue
            match self.streams[first]:
                case "resize":
                    self.resized.append(body)
                case "stdin":
                    self._data(writer, "stdout", body)
            if second >> 24 & 1:
                self._data(writer, "error", json.dumps(self.status).encode(), over=True)
                while await reader.read(1000):  # closing with something unread would take back what was written
                    pass
                return

    def _data(self, writer: asyncio.StreamWriter, name: str, data: bytes, *, over: bool = False) -> None:
        number = next(number for number, stream in self.streams.items() if stream == name)
        writer.write(struct.pack(">II", number, over << 24 | len(data)) + data)


@asynccontextmanager
async def streaming() -> AsyncIterator[tuple[FakeStreaming, str]]:
    server = FakeStreaming()
    url = await server.start()
    try:
        yield server, url
    finally:
        await server.stop()
