"""A proxy as companies have them: it carries TLS connections it is asked for by CONNECT, and knows how many."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    def __init__(self) -> None:
        self.heads: list[str] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        host, _, port = head.split()[1].rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        self._writers += [writer, back]
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, back), _copy(there, writer))

    def drop(self) -> None:
        """End all connections, as a server or a proxy does with idle ones."""
        for writer in self._writers:
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except OSError:
        return
    finally:
        writer.close()


@asynccontextmanager
async def proxy(host: str) -> AsyncIterator[tuple[Proxy, int]]:
    found = Proxy()
    server = await asyncio.start_server(found.serve, host, 0)
    try:
        yield found, server.sockets[0].getsockname()[1]
    finally:
        found.drop()
        server.close()
