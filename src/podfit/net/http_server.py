"""The HTTPS server: sockets in, calls of a `Handler` out.

aiohttp's parser reads the requests (`http_intake`), and that is all of aiohttp there is: its server costs a small
request several times what the parser does.

    HTTP problem                       answer, always a `Status` object
    not HTTP, bad framing, bad target  400 BadRequest, connection closed
    target over 64 KiB                 414, header over 32 KiB, more than 128 of them or 256 KiB 431, connection closed
    body over the limit                413 RequestEntityTooLarge, connection closed
    body that stops coming             408, connection closed
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

from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from podfit.core.errors import ApiError, bad_request
from podfit.net.guard import answer
from podfit.net.http_accept import BACKLOG, Connections, Listener
from podfit.net.http_connection import Connection
from podfit.net.http_intake import BrokenBody
from podfit.net.http_syntax import BadRequest, join_headers, split_target
from podfit.net.tls import ask_for_certificates
from podfit.net.websocket import asks_for_websocket
from podfit.net.wire import Handler, Request, Response

log = logging.getLogger(__name__)

BODY_LIMIT = 3 * 1024 * 1024  # bytes, as the API server's own limit
BODY_SECONDS = 60.0


class PortInUse(OSError):
    """Something else listens there already."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(errno.EADDRINUSE, f"port {port} on {host} is in use")
        self.host = host
        self.port = port


class HttpsServer:
    """Serves one handler on one or more addresses.

    `clients` are the authorities (PEM) that vouch for client certificates; without them none is asked for. `listen` is
    called for each address, at any time; `close` lets requests in flight finish until `deadline` seconds have passed.
    """

    def __init__(
        self,
        handler: Handler,
        tls: ssl.SSLContext,
        *,
        clients: bytes = b"",
        body_limit: int = BODY_LIMIT,
        body_timeout: float = BODY_SECONDS,
    ) -> None:
        self._handler = handler
        self._tls = tls
        if clients:
            ask_for_certificates(tls, clients)
        self._body_limit = body_limit
        self._body_timeout = body_timeout
        self._connections: Connections | None = None
        self._listeners: list[Listener] = []

    async def listen(self, host: str, port: int) -> int:
        """Accept connections on an IP address; `port` 0 takes a free one. Returns the port. Raises `PortInUse`."""
        if self._connections is None:
            self._connections = Connections(self._answer, self._tls)
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            sock = socket.create_server((host, port), family=family, backlog=BACKLOG)
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
        body = b"" if payload is EMPTY_PAYLOAD else await self._read_body(connection, headers, payload)
        if not connection.may_change and asks_for_websocket(headers):  # without `Connection: Upgrade`, behind a body
            headers.pop("upgrade")  # another protocol, which kubectl falls back to, is refused in the handler's words
        return await answer(
            self._handler,
            Request(
                message.method,
                path,
                query,
                headers,
                body,
                connection.peer_certificate,
                connection.remote,
                repeated=repeated,
            ),
        )

    async def _read_body(self, connection: Connection, headers: dict[str, str], payload: StreamReader) -> bytes:
        if int(headers.get("content-length", 0)) > self._body_limit:
            raise BadRequest(self._too_large())
        if headers.get("expect", "").lower() == "100-continue" and not payload.is_eof():
            connection.send_continue()
        chunks, size = [], 0
        try:
            if payload.is_eof():  # as small bodies are, which come with their head
                return payload.read_nowait()
            async with asyncio.timeout(self._body_timeout):
                connection.waits()
                while chunk := await payload.readany():
                    size += len(chunk)
                    if size > self._body_limit:
                        raise BadRequest(self._too_large())
                    chunks.append(chunk)
            if (broken := payload.exception()) is not None:  # at its very end
                raise broken
        except TimeoutError:
            raise BadRequest(ApiError(408, "Timeout", "the request body did not arrive in time")) from None
        except BrokenBody as error:
            raise BadRequest(bad_request(f"the request body cannot be read: {error}")) from None
        finally:
            connection.stops_waiting()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _too_large(self) -> ApiError:
        return ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: limit is {self._body_limit}")
