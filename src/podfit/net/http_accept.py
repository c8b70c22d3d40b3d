"""Sockets as they come: how many there are at once, when TLS begins on them, and who goes when there are too many.

    accepted ─▶ says something ─▶ TLS, a few in each turn of the loop ─▶ `Connection`

A socket whose client is silent has no TLS yet, which is most of what a connection costs. Of those whose handshake is
not over there are at most `MOST_ARRIVING`; the oldest makes room. When there are too many in all, whoever has kept the
server waiting longest makes room; when all of them are being answered, the new one is refused.
"""

import asyncio
import logging
import resource
import ssl
from asyncio.sslproto import SSLProtocol
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from podfit.net.client_certificates import Trust
from podfit.net.http_connection import Answering, Connection
from podfit.net.http_intake import READ, Intake

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10  # to begin it, and again to end it
SHUTDOWN_SECONDS = 2  # for the client's half of closing TLS
MOST_ARRIVING = 512
MOST_CONNECTIONS = 4096  # at about 60 KiB each
OF_FILES = 0.75  # no more than this part of the files that the process may open
HANDSHAKES = 4  # begun in one turn of the loop
STEP_SECONDS, GONE_STEPS = 0.005, 10


class Connections:
    """All connections of a server; makes one for each socket."""

    def __init__(self, answering: Answering, tls: ssl.SSLContext, clients: Trust | None) -> None:
        self.answering, self.clients = answering, clients
        self.alive: set[Connection] = set()
        """Those whose handshake is over."""
        self.waiting: dict[Intake, None] = {}
        """Those of them that wait for their client to ask, or to send the rest; the longest first."""
        self.sockets: set[asyncio.Transport] = set()
        """All of them, also while their handshake is under way."""
        self.arriving: dict[asyncio.Transport, None] = {}
        """Those whose handshake is not over, the oldest first."""
        self.closing = False
        """Set when the server closes: a handshake that ends after that is one nobody would close again."""
        self.buffer = memoryview(bytearray(READ))
        self._tls = tls
        self._most = min(MOST_CONNECTIONS, int(OF_FILES * resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
        self._greeted: deque[Arriving] = deque()

    def __call__(self) -> asyncio.BaseProtocol:
        return Arriving(self)

    def accepted(self, sock: asyncio.Transport) -> None:
        self.sockets.add(sock)
        self.arriving[sock] = None
        if len(self.arriving) > MOST_ARRIVING:
            self._refuse(next(iter(self.arriving)))
        elif len(self.sockets) > self._most:
            self._make_room(sock)

    def entered(self, connection: Connection) -> None:
        self.arriving.pop(connection.socket, None)
        self.alive.add(connection)

    def left(self, sock: asyncio.Transport) -> None:
        self.sockets.discard(sock)
        self.arriving.pop(sock, None)

    def greeted(self, arriving: "Arriving") -> None:
        """Its client has begun a handshake, which has its turn."""
        if not self._greeted:
            asyncio.get_running_loop().call_soon(self._begin)
        self._greeted.append(arriving)

    def secured(self, sock: asyncio.Transport) -> Any:
        """TLS between a socket and its connection."""
        nobody_waits, loop = None, asyncio.get_running_loop()
        protocol = _secured(type(loop).__module__.startswith("uvloop"))(
            loop,
            Connection(self, sock),
            self._tls,
            nobody_waits,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )
        protocol.left = self.left
        return protocol

    async def close(self, deadline: float) -> None:
        """End the streams, wait so many seconds for requests in flight, then cut what is left."""
        self.closing = True
        for connection in tuple(self.alive):
            connection.finish()
        if tasks := [connection.task for connection in self.alive if connection.task is not None]:
            _, late = await asyncio.wait(tasks, timeout=deadline)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._gone()

    def _begin(self) -> None:
        for _ in range(min(HANDSHAKES, len(self._greeted))):
            self._greeted.popleft().begin()
        if self._greeted:
            asyncio.get_running_loop().call_soon(self._begin)

    def _make_room(self, newest: asyncio.Transport) -> None:
        longest = next(iter(self.waiting), None)
        if isinstance(longest, Connection):
            del self.waiting[longest]
            self._refuse(longest.socket)
        else:
            self._refuse(newest)

    def _refuse(self, sock: asyncio.Transport) -> None:
        """Counted no more at once: many may come in one turn of the loop."""
        log.debug("too many connections remote=%s", sock.get_extra_info("peername"))
        self.left(sock)
        sock.abort()

    async def _gone(self) -> None:
        """Wait until no socket is left. A client has a moment to hear of the end; one that does not read is cut off."""
        for _ in range(GONE_STEPS):
            if not self.sockets:
                return
            await asyncio.sleep(STEP_SECONDS)
        for connection in tuple(self.alive):
            connection.cut()
        for transport in tuple(self.sockets):
            transport.abort()
        await asyncio.sleep(0)


class Arriving(asyncio.Protocol):
    """A socket until its client has said something and TLS has its turn."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._said = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self._timer = asyncio.get_running_loop().call_later(HANDSHAKE_SECONDS, self._socket.abort)
        self._connections.accepted(self._socket)

    def data_received(self, data: bytes) -> None:
        if not self._said:
            self._socket.pause_reading()
            self._timer.cancel()
            self._connections.greeted(self)
        self._said += data

    def connection_lost(self, exc: BaseException | None) -> None:
        self._timer.cancel()
        self._connections.left(self._socket)

    def begin(self) -> None:
        if self._socket.is_closing():
            return
        tls = self._connections.secured(self._socket)
        self._socket.set_protocol(tls)
        tls.connection_made(self._socket)
        said = memoryview(self._said)
        while said:
            buffer = tls.get_buffer(len(said))
            taken = min(len(buffer), len(said))
            buffer[:taken] = said[:taken]
            tls.buffer_updated(taken)
            said = said[taken:]
        if not self._socket.is_closing():
            self._socket.resume_reading()


class Watched:
    """Of TLS between a socket and its `Connection`: the server knows the socket to its last moment. What a loop's
    servers put there themselves cannot be told to end before the handshake is over, so a silent client's socket would
    outlive the server.
    """

    left: Callable[[asyncio.Transport], None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        super().connection_made(transport)  # type: ignore[misc]  # TLS has it

    def connection_lost(self, exc: BaseException | None) -> None:
        self.left(self._socket)
        super().connection_lost(exc)  # type: ignore[misc]


@cache
def _secured(of_uvloop: bool) -> Callable[..., Any]:
    """The loop's own TLS, watched: uvloop's costs a small request an eighth less CPU than asyncio's."""
    tls: type = SSLProtocol
    if of_uvloop:
        import uvloop.loop

        tls = uvloop.loop.SSLProtocol  # type: ignore[attr-defined]  # its stub does not name it; of asyncio's form
    return type("Secured", (Watched, tls), {})
