"""A pod's program: a plain HTTP server of this process that answers with what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[["Asked"], bytes]


@dataclass
class Asked:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        return [value for known, value in self.headers if known == name]


def answered(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Length: {len(body)}",
        *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
    ]
    return "\r\n".join((*lines, "", "")).encode() + body


def echo(asked: Asked) -> bytes:
    said = {"method": asked.method, "target": asked.target, "body": asked.body.decode(errors="replace")}
    return answered(b"" if asked.method == "HEAD" else json.dumps(said).encode(), Content_Type="application/json")


@dataclass
class Program:
    port: int = 0
    answer: Answer = echo
    asked: list[Asked] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = head[0].split(" ")
            named = (line.partition(":") for line in head[1:] if line)
            headers = [(name.lower(), value.strip()) for name, _, value in named]
            size = next((int(value) for name, value in headers if name == "content-length"), 0)
            self.asked.append(Asked(method, target, headers, await reader.readexactly(size)))
            writer.write(self.answer(self.asked[-1]))
            await writer.drain()
            if self.asked[-1].values("upgrade"):
                while data := await reader.read(1024):
                    writer.write(data.upper())
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running(address: str, answer: Answer = echo) -> AsyncIterator[Program]:
    program = Program(answer=answer)
    server = await asyncio.start_server(program.serve, address, 0)
    program.port = server.sockets[0].getsockname()[1]
    try:
        yield program
    finally:
        server.close()
