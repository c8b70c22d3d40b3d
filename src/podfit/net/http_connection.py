"""One client's connection: who it is, what it asks, in which order that is answered, and when it ends.

One task answers a connection's requests one after the other, as its two halves give them (`http_intake`) and write what
is answered (`http_outlet`). Of aiohttp only the parser is used: its server's second task for each request, its request
and response objects and its timers cost several times what the parser does.
"""

import asyncio
import logging
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any, Protocol, cast

from podfit.net.client_certificates import Trust, shown
from podfit.net.guard import internal_error, status_response
from podfit.net.http_intake import READ, BrokenBody, Intake
from podfit.net.http_outlet import Outlet
from podfit.net.http_parser import HttpProcessingError, RawRequestMessage, StreamReader
from podfit.net.http_syntax import Refused, parse_error
from podfit.net.streams import close, pour
from podfit.net.wire import Response

log = logging.getLogger(__name__)

IDLE_SECONDS = 90.0
FIRST_SECONDS = 30.0  # for the first request's headers: who connects and says nothing is not waited for
LINGER_SECONDS = 5.0  # for the rest of a body that nobody wants, so that the client comes to read why
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STEP_SECONDS, GONE_STEPS = 0.005, 10
HANDSHAKE_SECONDS = 10
SHUTDOWN_SECONDS = 2  # for the client's half of closing TLS


class Answering(Protocol):
    async def __call__(self, connection: "Connection", message: RawRequestMessage, payload: StreamReader) -> Response:
        """Raises Refused for a request that cannot be read."""


class Connections:
    """All connections of a server; makes one for each socket."""

    def __init__(self, answering: Answering, tls: ssl.SSLContext, clients: Trust | None) -> None:
        self.answering, self.clients = answering, clients
        self.alive: set[Connection] = set()
        """Those whose handshake is over."""
        self.sockets: set[asyncio.Transport] = set()
        """All of them, also while their handshake is under way."""
        self.closing = False
        """Set when the server closes: a handshake that ends after that is one nobody would close again."""
        self.buffer = memoryview(bytearray(READ))
        self._tls = tls

    def __call__(self) -> asyncio.BaseProtocol:
        nobody_waits, loop = None, asyncio.get_running_loop()
        protocol = _secured(type(loop).__module__.startswith("uvloop"))(
            loop, Connection(self), self._tls, nobody_waits, server_side=True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS, ssl_shutdown_timeout=SHUTDOWN_SECONDS)
        protocol.sockets = self.sockets
        return cast(asyncio.BaseProtocol, protocol)

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


class Watched:
    """Of TLS between a socket and its `Connection`: the server knows the socket from its first moment to its last. What
    a loop's servers put there themselves cannot be told to end before the handshake is over, so a silent client's
    socket would outlive the server.
    """

    sockets: set[asyncio.Transport]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self.sockets.add(self._socket)
        super().connection_made(transport)  # type: ignore[misc]  # TLS has it

    def connection_lost(self, exc: BaseException | None) -> None:
        self.sockets.discard(self._socket)
        super().connection_lost(exc)  # type: ignore[misc]


@cache
def _secured(of_uvloop: bool) -> Callable[..., Any]:
    """The loop's own TLS, watched: uvloop's costs a small request an eighth less CPU than asyncio's."""
    tls: type = SSLProtocol
    if of_uvloop:
        import uvloop.loop

        tls = uvloop.loop.SSLProtocol  # type: ignore[attr-defined]  # its stub does not name it; of asyncio's form
    return type("Secured", (Watched, tls), {})


class Connection(Intake):
    def __init__(self, connections: Connections) -> None:
        super().__init__(connections.buffer)
        self._connections = connections
        self._outlet = Outlet(self._loop)
        self._timer: asyncio.TimerHandle | None = None
        self._streaming = False
        self.task: asyncio.Task[None] | None = None
        self.peer_certificate: bytes | None = None
        self.untrusted = ""
        self.remote = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outlet.opened(self._transport)
        self._connections.alive.add(self)
        self._identify(self._transport)
        self._timer = self._loop.call_later(FIRST_SECONDS, self._impatient)
        if self._connections.closing:
            self.end()
        self.task = self._loop.create_task(self._serve())

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.alive.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self.lost()
        self._outlet.lost()
        self.finish()

    def pause_writing(self) -> None:
        self._outlet.pause()

    def resume_writing(self) -> None:
        self._outlet.resume()

    def finish(self) -> None:
        """Answer what is being answered, end a stream where it waits, and close."""
        self.end()
        if self._streaming and self.task is not None:
            self._streaming = False
            self.task.cancel()

    def encourage(self) -> None:
        """Tell a client that asks before it sends its body to send it."""
        if self._transport is not None:
            self._transport.write(CONTINUE)

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------------ requests, one after the other

    async def _serve(self) -> None:
        try:
            while asked := await self.next_request():
                if not await self._exchange(*asked):
                    return
        except ConnectionError:
            log.debug("client has left remote=%s", self.remote)
        except Exception:
            log.exception("connection failed remote=%s", self.remote)
        finally:
            if self._transport is not None:
                self._transport.close()

    async def _exchange(self, message: RawRequestMessage | HttpProcessingError, payload: StreamReader) -> bool:
        """Answer a request; whether there can be another."""
        if isinstance(message, HttpProcessingError):
            error = parse_error(message)
            log.debug("malformed request remote=%s error=%s", self.remote, error.message)
            await self._outlet.send(status_response(error), "GET", chunked=True, keep=False)
            return False
        keep = not message.should_close
        try:
            response = await self._connections.answering(self, message, payload)
        except Refused as refusal:
            response, keep = status_response(refusal.error), False
        keep = keep and not self.last
        if isinstance(response.body, bytes):
            await self._send(response, message.method, keep=keep)
        else:
            keep = await self._stream(response.body, response, message, keep=keep)
        if not payload.is_eof():
            keep = await self._linger(payload) and keep
        return keep

    async def _send(self, response: Response, method: str, *, keep: bool) -> None:
        try:
            await self._outlet.send(response, method, chunked=False, keep=keep)
        except ValueError:
            log.exception("the answer cannot be sent remote=%s", self.remote)
            await self._outlet.send(status_response(internal_error()), method, chunked=False, keep=keep)

    async def _stream(
        self, body: AsyncIterator[bytes], response: Response, message: RawRequestMessage, *, keep: bool
    ) -> bool:
        outlet, chunked = self._outlet, message.version >= (1, 1)
        keep = keep and chunked
        try:
            await outlet.send(response, message.method, chunked=chunked, keep=keep)
            if message.method != "HEAD":
                await self._streamed(body)
                outlet.end()
        except ConnectionError:
            raise
        except Exception as error:
            log.exception("stream failed method=%s path=%s", message.method, message.path)
            raise ConnectionResetError("the stream failed half way") from error
        finally:
            await close(body)
        return keep and not self._ending

    async def _streamed(self, body: AsyncIterator[bytes]) -> None:
        """Until the iterator ends or `finish` is called."""
        task = self.task
        assert task is not None
        if self._ending:
            return
        self._streaming = True
        try:
            await pour(body, self._outlet)
        except asyncio.CancelledError:
            if self._streaming:  # it was somebody else
                raise
            task.uncancel()
        self._streaming = False

    async def _linger(self, payload: StreamReader) -> bool:
        """Read what is left of a body; whether it came to its end."""
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while await payload.readany():
                    continue
        except (TimeoutError, BrokenBody):
            return False
        return True

    # ------------------------------------------------------------------ the rest

    def _identify(self, transport: asyncio.Transport) -> None:
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        certificates = shown(tls)
        if certificates and self._connections.clients is not None:
            self.untrusted = self._connections.clients.objection(certificates[0], certificates[1:])
            self.peer_certificate = None if self.untrusted else certificates[0]
        self.remote = transport.get_extra_info("peername", ("",))[0]
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def _impatient(self) -> None:
        """One timer for each connection looks now and then; restarting one with each request would cost more."""
        idle = self._loop.time() - self._idle_since if self._waiter is not None else 0.0
        if not self._heard:
            self.cut()
        elif idle >= IDLE_SECONDS:
            self.finish()
        else:
            self._timer = self._loop.call_later(IDLE_SECONDS - idle, self._impatient)
