"""The HTTPS server: sockets in, calls of a `Handler` out.

aiohttp's parser reads the requests (`http_intake`), and that is all of aiohttp there is: its server costs a small
request several times what the parser does.

    HTTP problem                       answer, always a `Status` object
    not HTTP, bad framing, bad target  400 BadRequest, connection closed
    target over 64 KiB                 414, header over 32 KiB, more than 128 of them or 256 KiB 431, connection closed
    body over the limit                413 RequestEntityTooLarge, connection closed
    body that stops coming             408, connection closed
    no room for the body               429 TooManyRequests, connection closed (`memory_budget`)
    `ApiError` out of the handler      its own status
    anything else out of the handler   500 InternalError, traceback in the log

A streamed body is flushed chunk by chunk. When the client goes away, or the server closes, the iterator is cancelled
where it waits and closed; a request that is being handled is never cancelled, so a write is not cut in half.

A client certificate is optional. One that no authority of `clients` has signed, that is over or not meant for clients
fails the handshake; one that names nobody is the handler's 401.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from podfit.core.errors import ApiError, bad_request
from podfit.net.addresses import PortInUse
from podfit.net.guard import answer
from podfit.net.http_accept import BACKLOG, Connections, Listener
from podfit.net.http_connection import Connection
from podfit.net.http_intake import BrokenBody
from podfit.net.http_syntax import BadRequest, NoRoom, join_headers, split_target
from podfit.net.memory_budget import OF_PROCESS, RECEIVED, MemoryBudget
from podfit.net.tls import ask_for_certificates
from podfit.net.websocket import asks_for_websocket
from podfit.net.wire import SMALL_BODY, Handler, Request, Response

log = logging.getLogger(__name__)

BODY_LIMIT = 3 * 1024 * 1024  # bytes, as the API server's own limit
BODY_SECONDS = 60.0
COUNTED = 4096  # bytes of a body that is there; below it is no more than what an idle connection has
OF_READING = 96 * 1024  # bytes beside a body that is being read: what TLS and the parser have of it


Identify: TypeAlias = Callable[[Request], Awaitable[str]]
"""Who sends a request, by its headers and its connection; empty for nobody. Raises ApiError as the handler would."""


class _Unknown(Exception):
    """The body is too large for somebody who is not known."""


class HttpsServer:
    """Serves one handler on one or more addresses.

    `clients` are the authorities (PEM) that vouch for client certificates; without them none is asked for. `listen` is
    called for each address, at any time; `close` lets requests in flight finish until `deadline` seconds have passed.

    `identify` says who sends a request, empty for nobody. With it a body of more than 64 KiB is read only from
    somebody; the request of a stranger reaches the handler without its body (`Request.unread`). All servers of a
    process share one `budget` of memory.
    """

    def __init__(
        self,
        handler: Handler,
        tls: ssl.SSLContext,
        *,
        clients: bytes = b"",
        body_limit: int = BODY_LIMIT,
        body_timeout: float = BODY_SECONDS,
        identify: Identify | None = None,
        budget: MemoryBudget = OF_PROCESS,
    ) -> None:
        self._handler = handler
        self._tls = tls
        if clients:
            ask_for_certificates(tls, clients)
        self._body_limit = body_limit
        self._body_timeout = body_timeout
        self._identify = identify
        self._budget = budget
        self._connections: Connections | None = None
        self._listeners: list[Listener] = []

    async def listen(self, host: str, port: int, *, not_yet: bool = False) -> int:
        """Accept connections on an IP address; `port` 0 takes a free one. Returns the port. Raises `PortInUse`. With
        `not_yet` the machine need not have the address now."""
        if self._connections is None:
            self._connections = Connections(self._answer, self._tls, self._budget)
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            sock = _early(host, port) if not_yet else socket.create_server((host, port), family=family, backlog=BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(host, port) from error
            raise
        listener = Listener(sock, self._connections)
        self._listeners.append(listener)
        return listener.port

    async def close(self, *, deadline: float = 5.0) -> None:
        """Stop accepting, end the streams and wait for requests in flight; cut those older than `deadline` seconds."""
        if self._connections is None:
            return
        for listener in self._listeners:
            listener.close()
        await self._connections.close(deadline)
        self._connections, self._listeners = None, []

    async def _answer(self, connection: Connection, message: RawRequestMessage, payload: StreamReader) -> Response:
        path, query = split_target(message.path)
        headers, repeated = join_headers(message.headers.items())
        body, unread = b"", False
        if payload is not EMPTY_PAYLOAD:
            head = Request(message.method, path, query, headers, b"", connection.peer_certificate, connection.remote)
            try:
                body = await self._read_body(connection, head, payload)
            except _Unknown:
                unread = True
        if not connection.may_change and asks_for_websocket(headers):  # without `Connection: Upgrade`, behind a body
            headers.pop("upgrade")  # another protocol, which kubectl falls back to, is refused in the handler's words
        request = Request(
            message.method,
            path,
            query,
            headers,
            body,
            connection.peer_certificate,
            connection.remote,
            repeated=repeated,
            caller=connection.account,
            unread=unread,
        )
        return await answer(self._handler, request)

    async def _read_body(self, connection: Connection, head: Request, payload: StreamReader) -> bytes:
        """All of it, counted until the request is answered. Raises _Unknown."""
        length = int(head.headers.get("content-length", 0))
        if length > self._body_limit:
            raise BadRequest(self._too_large())
        try:
            if payload.is_eof():  # as small bodies are, which come with their head
                body = payload.read_nowait()
                if len(body) > COUNTED:
                    await self._make_room(connection, head, len(body))
                return body
            limit = self._body_limit
            if length > SMALL_BODY or "content-length" not in head.headers:
                limit = self._body_limit if await self._knows(connection, head) else SMALL_BODY
            if length > limit:
                raise _Unknown
            async with asyncio.timeout(self._body_timeout):
                return await self._read(connection, head, payload, limit)
        except TimeoutError:
            raise BadRequest(ApiError(408, "Timeout", "the request body did not arrive in time")) from None
        except BrokenBody as error:
            raise BadRequest(bad_request(f"the request body cannot be read: {error}")) from None
        finally:
            connection.stops_waiting()

    async def _knows(self, connection: Connection, head: Request) -> bool:
        """Whether somebody sends the body, for whom it counts from now on. Raises _Unknown for wrong credentials."""
        if self._identify is None:
            return True
        try:
            user = await self._identify(head)
        except ApiError:
            raise _Unknown from None
        if user:
            connection.account.belongs_to(user)
        return bool(user)

    async def _make_room(self, connection: Connection, head: Request, size: int) -> None:
        """So much of a body is held: for an address, and when it has no room for more, for who sends it. Raises
        BadRequest when they have none either."""
        account = connection.account
        if account.hold(RECEIVED, size):
            return
        if self._identify is None or not await self._knows(connection, head) or not account.hold(RECEIVED, size):
            raise NoRoom(no_room())

    async def _read(self, connection: Connection, head: Request, payload: StreamReader, limit: int) -> bytes:
        account = connection.account
        if head.headers.get("expect", "").lower() == "100-continue":
            connection.send_continue()
        await self._make_room(connection, head, OF_READING)
        connection.waits()
        connection.wants_body()
        chunks, size = list[bytes](), 0
        while chunk := await payload.readany():
            size += len(chunk)
            if size > limit:
                raise _Unknown if limit < self._body_limit else BadRequest(self._too_large())
            account.moves(len(chunk))
            await self._make_room(connection, head, OF_READING + size)
            chunks.append(chunk)
        if (broken := payload.exception()) is not None:  # at its very end
            raise broken
        connection.received(size)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _too_large(self) -> ApiError:
        return ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: limit is {self._body_limit}")


def no_room() -> ApiError:
    """For a body, now."""
    text = "too many bodies and answers are under way, please try again later"
    return ApiError(429, "TooManyRequests", text, {"retryAfterSeconds": 1})


IP_FREEBIND = 15
"""Of <linux/in.h>; Python does not name it."""


def _early(host: str, port: int) -> socket.socket:
    """Listening on an address of IPv4 that the machine may get later (ip(7), IP_FREEBIND). Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
