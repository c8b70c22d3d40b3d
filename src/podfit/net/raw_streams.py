"""Raw TCP and TLS streams for upgraded connections: dialled, and joined to a client's."""

import asyncio
import ssl
from collections.abc import Coroutine
from typing import Any
from urllib.parse import urlsplit

from podfit.net.reachability import CONNECT_SECONDS, Unreachable, target_of
from podfit.net.wire import Duplex, Request, Response

PIECE = 64 * 1024
MOST_HEAD = 64 * 1024  # bytes of an answer's status and headers
MOST_REFUSAL = 64 * 1024  # bytes that are read of why it was none
ANSWER_SECONDS = 30.0


class Dialled:
    """A connection that this side has opened, as `wire.Duplex`. `close` it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer

    @property
    def ready(self) -> bool:
        transport = self._writer.transport
        return not transport.is_closing() and transport.get_write_buffer_size() < PIECE

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def drained(self) -> None:
        await self._writer.drain()

    async def read(self) -> bytes:
        try:
            return await self.reader.read(PIECE)
        except OSError:
            return b""

    def close(self) -> None:
        self._writer.transport.abort()


async def dial(url: str, request: Request, *, tls: ssl.SSLContext | None = None) -> Response | tuple[Response, Dialled]:
    """Ask the server of `url` (scheme, host and port) for another protocol: its 101 with the connection, or the answer
    that it gave instead. Raises Unreachable.
    """
    there = urlsplit(url)
    host, port = there.hostname or "", there.port or (443 if there.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                host, port, ssl=tls if there.scheme == "https" else None, limit=MOST_HEAD
            )
    except (OSError, TimeoutError) as error:
        raise Unreachable(f"{url}: {str(error) or type(error).__name__}") from error
    dialled = Dialled(reader, writer)
    kept = False
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            writer.write(_head(request, there.netloc))
            await writer.drain()
            status, headers = _answer(await reader.readuntil(b"\r\n\r\n"))
            if status == 101:
                kept = True
                return Response(status, headers), dialled
            return Response(status, headers, await _refusal(reader, headers))
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise Unreachable(f"{url}: {str(error) or type(error).__name__}") from error
    finally:
        if not kept:
            dialled.close()


async def join(one: Duplex, other: Duplex) -> None:
    """Carry bytes between the two until either side has left."""
    await until_one_is_over(_carry(one, other), _carry(other, one))


async def until_one_is_over(*works: Coroutine[Any, Any, None]) -> None:
    """The others are ended then."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()


async def _carry(source: Duplex, sink: Duplex) -> None:
    try:
        while data := await source.read():
            sink.write(data)
            if not sink.ready:
                await sink.drained()
    except ConnectionError:
        return


def _head(request: Request, host: str) -> bytes:
    """Raises ValueError for a header that would end before its time."""
    lines = [f"{request.method} {target_of(request)} HTTP/1.1", f"host: {host}"]
    lines += [f"{name}: {text}" for name, text in request.headers.items()]
    lines += ["connection: Upgrade", "content-length: 0"]
    if any(letter in line for line in lines for letter in "\r\n\0"):
        raise ValueError("a header has a line break in it")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _answer(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("the answer is not HTTP")
    named = (line.partition(":") for line in lines if line)
    return int(rest[:3]), {name.strip().lower(): text.strip() for name, _, text in named}


async def _refusal(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    """The refusal, as much of it as its length says, or comes at once."""
    size = min(int(headers.get("content-length", MOST_REFUSAL)), MOST_REFUSAL)
    if "content-length" in headers:
        return await reader.readexactly(size)
    return await reader.read(size)
