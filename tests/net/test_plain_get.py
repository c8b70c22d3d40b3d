"""One GET to servers that answer well, badly, slowly or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podfit.net.plain_get import GetFailed, PlainAnswer, connect, get


@asynccontextmanager
async def serving(*answers: bytes, hold: bool = False) -> AsyncIterator[tuple[int, list[str]]]:
    """A server that gives each connection the next answer, and what it was asked. `hold`: it does not hang up."""
    asked, left = list[str](), list(answers)

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(left.pop(0) if left else b"")
            await writer.drain()
            if hold:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        await server.wait_closed()


def answer(status: str, *headers: str, body: str = "") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", body]).encode()


async def ask(port: int, *, timeout: float = 5.0, kept: int = 100) -> PlainAnswer:
    return await get(f"http://127.0.0.1:{port}/a?b=c", [("X", "y")], timeout=timeout, kept=kept)


async def test_what_is_sent_and_read() -> None:
    async with serving(b"HTTP/1.1 100 Continue\r\n\r\n" + answer("204 No Content") + answer("404 x")) as (port, asked):
        assert await ask(port) == PlainAnswer(204)
    assert asked == [f"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: y\r\nConnection: close\r\n\r\n"]


async def test_no_more_of_a_body_is_read_than_is_kept() -> None:
    async with serving(answer("200 OK", body="x" * 9999), hold=True) as (port, _):
        assert await ask(port, kept=7) == PlainAnswer(200, b"x" * 7)


async def test_a_server_that_does_not_hang_up_is_not_waited_for() -> None:
    async with serving(answer("503 No", body="why"), hold=True) as (port, _):
        assert await ask(port) == PlainAnswer(503, b"why")


async def test_redirects_are_followed_on_the_same_host_only() -> None:
    async with serving(answer("302 Found", "Location: /there"), answer("200 OK")) as (port, asked):
        assert await ask(port) == PlainAnswer(200)
        assert asked[1].startswith("GET /there HTTP/1.1")
    async with serving(answer("302 Found", "Location: http://other.example/", body="gone")) as (port, _):
        assert await ask(port) == PlainAnswer(302, b"gone", elsewhere=True)
    async with serving(*[answer("302 Found", "Location: /again")] * 10) as (port, _):
        with pytest.raises(GetFailed, match="stopped after 10 redirects"):
            await ask(port)


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"", "EOF"),
        (b"hello\r\n\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "malformed HTTP response"),
    ],
)
async def test_what_is_no_answer(sent: bytes, text: str) -> None:
    async with serving(sent) as (port, _):
        with pytest.raises(GetFailed) as failed:
            await ask(port)
    assert str(failed.value) == f'Get "http://127.0.0.1:{port}/a?b=c": {text}'


async def test_nobody_listens_and_nobody_answers() -> None:
    async with serving(hold=True) as (port, _):
        with pytest.raises(GetFailed, match=r"context deadline exceeded \(Client.Timeout exceeded while awaiting head"):
            await ask(port, timeout=0.05)
        await connect("127.0.0.1", port, timeout=5)
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    with pytest.raises(GetFailed) as failed:
        await ask(port)
    assert str(failed.value) == f'Get "http://127.0.0.1:{port}/a?b=c": {refused}'
    with pytest.raises(GetFailed) as failed:
        await connect("127.0.0.1", port, timeout=5)
    assert str(failed.value) == refused
