"""A certificate authority, a server on a free loopback port and raw sockets to it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from podfit.net.authority import Authority
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import KeyPair, client_context, server_context
from podfit.net.wire import Handler
from support.wire import HOST, Dial, Wire


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.load(tmp_path_factory.mktemp("pki"), clock=SystemClock())


@pytest.fixture(scope="session")
def server_pair(authority: Authority) -> KeyPair:
    return authority.server("server", hosts=(HOST, "localhost"))


@pytest.fixture(scope="session")
def trusting(authority: Authority) -> ssl.SSLContext:
    """A client that trusts the server and shows no certificate."""
    return client_context(authorities=authority.certificate)


@pytest.fixture
def serving(authority: Authority, server_pair: KeyPair) -> Callable[[Handler], AbstractAsyncContextManager[int]]:
    """`async with serving(handler) as port`."""

    @asynccontextmanager
    async def serve(handler: Handler) -> AsyncIterator[int]:
        server = HttpsServer(handler, server_context(server_pair), clients=authority.certificate)
        try:
            yield await server.listen(HOST, 0)
        finally:
            await server.close(deadline=1.0)

    return serve


@pytest.fixture
async def dial(trusting: ssl.SSLContext) -> AsyncIterator[Dial]:
    """`await dial(port)` gives a `Wire`; all are closed afterwards."""
    wires: list[Wire] = []

    async def connect(port: int, context: ssl.SSLContext | None = None) -> Wire:
        wires.append(Wire(*await asyncio.open_connection(HOST, port, ssl=context or trusting)))
        return wires[-1]

    yield connect
    for wire in wires:
        wire.writer.transport.abort()
