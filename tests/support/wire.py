"""A raw TLS connection: what a client that follows no rules can send."""

import asyncio
import ssl
from typing import Protocol

HOST = "127.0.0.1"


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next answer."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), {name.lower(): value for name, value in pairs}

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer, whose body has a length."""
        status, headers = await self.head()
        return status, headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def chunk(self) -> bytes:
        """The next chunk of a streamed body; empty at its end."""
        size = int(await self.reader.readline(), 16)
        return (await self.reader.readexactly(size + 2))[:-2]


class Dial(Protocol):
    async def __call__(self, port: int, context: ssl.SSLContext | None = None) -> Wire: ...


def get(path: str, **headers: str) -> bytes:
    """The bytes of a GET."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()
