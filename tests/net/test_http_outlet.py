"""A stream into a connection whose other end has left."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from podfit.net.http_outlet import TURN, Outlet
from podfit.net.streams import write_to
from podfit.net.wire import Response


class Breaking(asyncio.Transport):
    """Its socket fails at the third write; the loop would tell its protocol later."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += 1

    def is_closing(self) -> bool:
        return self.written >= 3


class Unaware(asyncio.Transport):
    """TLS over a socket that has failed: it takes everything, and only the loop can tell that nobody is there. Raises
    when it has been given too much in one turn."""

    def __init__(self, outlet: Outlet) -> None:
        super().__init__()
        self.most = 2 * TURN
        self._outlet, self._given = outlet, 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._given:
            asyncio.get_running_loop().call_soon(self._outlet.lost)
        self._given += len(data)
        if self._given > self.most:
            raise OverflowError("the loop has had no turn")

    def is_closing(self) -> bool:
        return False


async def endless(piece: bytes = b"x") -> AsyncIterator[bytes]:
    while True:
        yield piece


async def test_a_stream_that_never_waits_ends_when_the_client_has_left() -> None:
    outlet, transport = Outlet(asyncio.get_running_loop()), Breaking()
    outlet.opened(transport)
    assert outlet.ready
    with pytest.raises(ConnectionResetError, match="the client has left"):
        await write_to(endless(), outlet)
    assert transport.written == 3


async def test_a_stream_that_never_waits_gives_the_loop_its_turns() -> None:
    outlet = Outlet(asyncio.get_running_loop())
    outlet.opened(Unaware(outlet))
    with pytest.raises(ConnectionResetError, match="the client has left"):
        await write_to(endless(bytes(64 * 1024)), outlet)


async def test_a_large_answer_gives_the_loop_its_turns() -> None:
    outlet = Outlet(asyncio.get_running_loop())
    outlet.opened(Unaware(outlet))
    with pytest.raises(ConnectionResetError, match="the client has left"):
        await outlet.send(Response(200, {}, bytes(4 * TURN)), "GET", chunked=False, keep=True)
