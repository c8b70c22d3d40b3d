"""Bytes that are almost HTTP: each answer is a client error or a success, and nothing unexpected reaches the log."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podfit.net.wire import Handler, Request, Response
from support.wire import Dial

SEEDS = [
    b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n",
    b"POST /a%20b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
    b"PATCH / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
]
PIECES = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [b"\r\n", b"\r\n\r\n", b" ", b":", b"%", b"%00", b"//", b"?", b"*", b"http://[", b"99999999999", b"\x80"]
    ),
)
EDITS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 6), PIECES), min_size=1, max_size=4)


@given(seed=st.sampled_from(SEEDS), edits=EDITS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_almost_http(
    serving: Callable[[Handler], AbstractAsyncContextManager[int]],
    dial: Dial,
    trusting: ssl.SSLContext,
    caplog: pytest.LogCaptureFixture,
    seed: bytes,
    edits: list[tuple[int, int, bytes]],
) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, {}, b"ok")

    data = seed
    for start, removed, piece in edits:
        data = data[:start] + piece + data[start + removed :]
    async with serving(handler) as port:
        wire = await dial(port)
        await wire.send(data + b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        try:
            answer = await asyncio.wait_for(wire.reader.readline(), 0.2)
        except TimeoutError:
            answer = b""  # it waits for the rest of a body
        wire.writer.transport.abort()
    assert answer == b"" or answer.split()[1] in (b"200", b"400", b"414", b"431"), answer
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
