"""A stream into a connection whose other end has left."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from podfit.net.http_outlet import Outlet
from podfit.net.streams import write_to


class Breaking(asyncio.Transport):
    """Its socket fails at the third write; the loop would tell its protocol later."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += 1

    def is_closing(self) -> bool:
        return self.written >= 3


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x"


async def test_a_stream_that_never_waits_ends_when_the_client_has_left() -> None:
    outlet, transport = Outlet(asyncio.get_running_loop()), Breaking()
    outlet.opened(transport)
    assert outlet.ready
    with pytest.raises(ConnectionResetError, match="the client has left"):
        await write_to(endless(), outlet)
    assert transport.written == 3
