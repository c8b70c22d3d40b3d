"""The HTTPS server: sockets in, calls of a `Handler` out.

It stands on aiohttp's low-level server (the parser, keep-alive and the connection's task) and not on its `Application`:
routing belongs to the handler, and writing the answer straight to the connection halves the cost of a small request.

    HTTP problem                       answer, always a `Status` object
    not HTTP, bad framing, bad target  400 BadRequest, connection closed
    target over 64 KiB                 414, header over 32 KiB or more than 128 of them 431, connection closed
    body over the limit                413 RequestEntityTooLarge, connection closed
    body that stops coming             408, connection closed
    `ApiError` out of the handler      its own status
    anything else out of the handler   500 InternalError, traceback in the log

A streamed body is flushed chunk by chunk. When the client goes away, or the server closes, the iterator is cancelled
where it waits and closed; a request that is being handled is never cancelled, so a write is not cut in half.

A client certificate is optional (`client_certificates`). One that does not verify, or verifies and names nobody, is the
handler's 401.
"""

import asyncio
import errno
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_writer import StreamWriter
from multidict import CIMultiDict

from podfit.core.errors import ApiError, bad_request
from podfit.net.client_certificates import Trust
from podfit.net.guard import answer, internal_error, status_response
from podfit.net.http_syntax import (
    HEADER_LIMIT,
    HEADERS_LIMIT,
    TARGET_LIMIT,
    Refused,
    http_date,
    parse_error,
    phrase,
    split_target,
)
from podfit.net.wire import Handler, Request, Response

log = logging.getLogger(__name__)

BODY_LIMIT = 3 * 1024 * 1024  # bytes, as the API server's own limit
IDLE_SECONDS = 90.0
BODY_SECONDS = 60.0
HANDSHAKE_SECONDS = 10.0
SHUTDOWN_SECONDS = 2.0  # for the client's half of closing TLS
STEP_SECONDS, GONE_STEPS = 0.005, 10
SLICE = 128 * 1024  # large bodies reach TLS in slices: one huge write costs more than twice the CPU


class PortInUse(OSError):
    """Something else listens there already."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(errno.EADDRINUSE, f"port {port} on {host} is in use")
        self.host = host
        self.port = port


class HttpsServer:
    """Serves one handler on one address.

    `listen` may be called once; `close` lets requests in flight finish until `deadline` seconds have passed.
    """

    def __init__(self, handler: Handler, tls: ssl.SSLContext, *, clients: Trust | None = None,
                 body_limit: int = BODY_LIMIT, body_timeout: float = BODY_SECONDS) -> None:
        self._handler = handler
        self._tls = tls
        self._clients = clients
        if clients is not None:
            clients.ask(tls)
        self._body_limit = body_limit
        self._body_timeout = body_timeout
        self._connections: _Connections | None = None
        self._listener: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Accept connections on an IP address; `port` 0 takes a free one. Returns the port. Raises `PortInUse`."""
        self._connections = _Connections(self._answer)
        self._connections.clients = self._clients
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connections, host, port, ssl=self._tls, backlog=1024, ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(host, port) from error
            raise
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def close(self, *, deadline: float = 5.0) -> None:
        """Stop accepting, end the streams and wait for requests in flight; cut those older than `deadline` seconds."""
        if self._listener is None or self._connections is None:
            return
        self._listener.close()
        self._connections.closing = True
        for connection in self._connections.open():
            connection.end_stream()
        self._connections.pre_shutdown()
        await self._connections.shutdown(deadline / 2)  # aiohttp waits twice: for the handler, then for its task
        await self._connections.gone()
        self._listener = None

    async def _answer(self, raw: web.BaseRequest) -> web.StreamResponse:
        try:
            request = await self._receive(raw)
        except Refused as refusal:
            return _as_aiohttp(_Answer(raw, status_response(refusal.error), keep_alive=False))
        return _as_aiohttp(_Answer(raw, await answer(self._handler, request), keep_alive=raw.keep_alive))

    async def _receive(self, raw: web.BaseRequest) -> Request:
        connection = cast(_Connection, raw.protocol)
        path, query = split_target(raw.raw_path)
        headers: dict[str, str] = {}
        for name, value in raw.headers.items():
            name = name.lower()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return Request(
            raw.method, path, query, headers, await self._read_body(raw) if raw.body_exists else b"",
            connection.peer_certificate, connection.remote, untrusted=connection.untrusted)

    async def _read_body(self, raw: web.BaseRequest) -> bytes:
        if (raw.content_length or 0) > self._body_limit:
            raise Refused(self._too_large())
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self._body_timeout):
                while chunk := await raw.content.readany():
                    size += len(chunk)
                    if size > self._body_limit:
                        raise Refused(self._too_large())
                    chunks.append(chunk)
        except TimeoutError:
            raise Refused(ApiError(408, "Timeout", "the request body did not arrive in time")) from None
        except web.RequestPayloadError as error:
            raise Refused(bad_request(f"the request body cannot be read: {error}")) from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _too_large(self) -> ApiError:
        return ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: limit is {self._body_limit}")


class _Connections(web.Server):
    """aiohttp's set of connections, making ours instead of its own."""

    clients: Trust | None = None

    def __call__(self) -> web.RequestHandler:
        return _Connection(
            self, loop=self._loop, access_log=None, keepalive_timeout=IDLE_SECONDS, auto_decompress=False,
            max_line_size=TARGET_LIMIT, max_field_size=HEADER_LIMIT, max_headers=HEADERS_LIMIT, lingering_time=5.0)

    closing = False
    """Set when the server closes: a handshake that ends after that is one nobody would close again."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(handler)
        self.alive: set[_Connection] = set()

    async def gone(self) -> None:
        """Wait until no socket is left. A client has a moment to hear of the end; one that does not read is cut off."""
        for _ in range(GONE_STEPS):
            if not self.alive:
                return
            await asyncio.sleep(STEP_SECONDS)
        for connection in list(self.alive):
            connection.cut()
        await asyncio.sleep(0)

    def open(self) -> list["_Connection"]:
        return [cast(_Connection, connection) for connection in self.connections]


class _Connection(web.RequestHandler):
    """One client's connection: who it is, and the stream it is reading, if any."""

    __slots__ = ("_connections", "_stream", "_stream_ended", "peer_certificate", "remote", "untrusted")

    def __init__(self, manager: "_Connections", **options: Any) -> None:
        super().__init__(manager, **options)
        self._connections = manager
        self.peer_certificate: bytes | None = None
        self.untrusted = ""
        self.remote = ""
        self._stream: asyncio.Task[Any] | None = None
        self._stream_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.alive.add(self)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        shown = tls.getpeercert(binary_form=True) if tls is not None else None
        if shown is not None and self._connections.clients is not None:
            self.untrusted = self._connections.clients.objection(shown)
            self.peer_certificate = None if self.untrusted else shown
        self.remote = transport.get_extra_info("peername", ("",))[0]
        if self._connections.closing:
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.end_stream()
        self._connections.alive.discard(self)
        super().connection_lost(exc)

    def cut(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def end_stream(self) -> None:
        """Make the streamed answer end where it waits."""
        if self._stream is not None and not self._stream_ended:
            self._stream_ended = True
            self._stream.cancel()

    async def stream(self, writer: StreamWriter, body: AsyncIterator[bytes]) -> None:
        """Send the chunks as they come, until the iterator ends or `end_stream` is called."""
        task = asyncio.current_task()
        assert task is not None
        self._stream, self._stream_ended = task, False
        try:
            async for chunk in body:
                await writer.write(chunk)
        except asyncio.CancelledError:
            if not self._stream_ended:
                raise
            task.uncancel()
        finally:
            self._stream = None

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None,
    ) -> web.StreamResponse:
        """What aiohttp could not parse, or met while answering; see the table above."""
        if isinstance(exc, HttpProcessingError):
            error = parse_error(exc)
            log.debug("malformed request remote=%s error=%s", self.remote, error.message)
        elif isinstance(exc, ConnectionError):
            raise exc  # the client left while it was sending
        else:
            log.error("connection failed remote=%s", self.remote, exc_info=exc)
            error = internal_error()
        if request.writer.output_size > 0:
            raise ConnectionResetError("the answer had begun") from exc
        return _as_aiohttp(_Answer(request, status_response(error), keep_alive=False))


class _Answer:
    """Writes a `Response`; has what aiohttp's connection asks of a `StreamResponse`: prepare, write_eof, keep_alive."""

    __slots__ = ("_raw", "_response", "keep_alive")

    def __init__(self, raw: web.BaseRequest, response: Response, *, keep_alive: bool) -> None:
        self._raw = raw
        self._response = response
        self.keep_alive = keep_alive

    async def prepare(self, raw: web.BaseRequest) -> None:
        response, writer = self._response, cast(StreamWriter, raw.writer)
        headers = CIMultiDict(response.headers)
        headers["Date"] = http_date()
        if isinstance(response.body, bytes):
            if response.body or response.status not in (204, 304):
                headers["Content-Length"] = str(len(response.body))
        elif raw.version >= (1, 1):
            headers["Transfer-Encoding"] = "chunked"
            if raw.method != "HEAD":
                writer.enable_chunking()
        else:
            self.keep_alive = False
        if not self.keep_alive:
            headers["Connection"] = "close"
        await writer.write_headers(f"HTTP/1.1 {response.status} {phrase(response.status)}", headers)

    async def write_eof(self) -> None:
        body, writer = self._response.body, cast(StreamWriter, self._raw.writer)
        if not isinstance(body, bytes):
            await self._write_stream(body, writer)
        elif self._raw.method == "HEAD":
            await writer.write_eof()
        elif len(body) <= SLICE:
            await writer.write_eof(body)
        else:
            writer.send_headers()
            view = memoryview(body)
            for start in range(0, len(body), SLICE):
                await writer.write(view[start:start + SLICE])
            await writer.write_eof()

    async def _write_stream(self, body: AsyncIterator[bytes], writer: StreamWriter) -> None:
        try:
            writer.send_headers()
            if self._raw.method == "HEAD":
                return
            await cast(_Connection, self._raw.protocol).stream(writer, body)
            await writer.write_eof()
        except ConnectionError:
            raise
        except Exception as error:
            log.exception("stream failed method=%s path=%s", self._raw.method, self._raw.raw_path)
            raise ConnectionResetError("the stream failed half way") from error
        finally:
            await close_body(body)


def _as_aiohttp(answer: _Answer) -> web.StreamResponse:
    return cast(web.StreamResponse, answer)


async def close_body(body: AsyncIterator[bytes]) -> None:
    close = getattr(body, "aclose", None)
    if close is not None:
        await close()
