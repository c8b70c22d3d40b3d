"""One client's connection in aiohttp's low-level server: who it is, how an answer is written, how a stream ends."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_writer import StreamWriter
from multidict import CIMultiDict

from podfit.net.client_certificates import Trust
from podfit.net.guard import internal_error, status_response
from podfit.net.http_syntax import HEADER_LIMIT, HEADERS_LIMIT, TARGET_LIMIT, http_date, parse_error, phrase
from podfit.net.wire import Response

log = logging.getLogger(__name__)

IDLE_SECONDS = 90.0
FIRST_SECONDS = 30.0  # for the first request's headers: who connects and says nothing is not waited for
STEP_SECONDS, GONE_STEPS = 0.005, 10
SLICE = 128 * 1024  # large bodies reach TLS in slices: one huge write costs more than twice the CPU


class Connections(web.Server):
    """aiohttp's set of connections, making ours instead of its own."""

    clients: Trust | None = None

    def __call__(self) -> web.RequestHandler:
        return Connection(
            self, loop=self._loop, access_log=None, keepalive_timeout=IDLE_SECONDS, auto_decompress=False,
            max_line_size=TARGET_LIMIT, max_field_size=HEADER_LIMIT, max_headers=HEADERS_LIMIT, lingering_time=5.0)

    closing = False
    """Set when the server closes: a handshake that ends after that is one nobody would close again."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(handler)
        self.alive: set[Connection] = set()

    async def gone(self) -> None:
        """Wait until no socket is left. A client has a moment to hear of the end; one that does not read is cut off."""
        for _ in range(GONE_STEPS):
            if not self.alive:
                return
            await asyncio.sleep(STEP_SECONDS)
        for connection in list(self.alive):
            connection.cut()
        await asyncio.sleep(0)

    def open(self) -> list["Connection"]:
        return [cast(Connection, connection) for connection in self.connections]


class Connection(web.RequestHandler):
    """One client's connection: who it is, and the stream it is reading, if any."""

    __slots__ = (
        "_connections", "_patience", "_stream", "_stream_ended", "_wire", "peer_certificate", "remote", "untrusted")

    def __init__(self, manager: "Connections", **options: Any) -> None:
        super().__init__(manager, **options)
        self._connections = manager
        self.peer_certificate: bytes | None = None
        self.untrusted = ""
        self.remote = ""
        self._stream: asyncio.Task[Any] | None = None
        self._stream_ended = False
        self._wire: asyncio.Transport | None = None
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._wire = cast(asyncio.Transport, transport)
        self._connections.alive.add(self)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        shown = tls.getpeercert(binary_form=True) if tls is not None else None
        if shown is not None and self._connections.clients is not None:
            self.untrusted = self._connections.clients.objection(shown)
            self.peer_certificate = None if self.untrusted else shown
        self.remote = transport.get_extra_info("peername", ("",))[0]
        if self._connections.closing:
            self.force_close()
        self._patience = self._loop.call_later(FIRST_SECONDS, self._impatient)

    def _impatient(self) -> None:
        if not self._request_count:
            self.cut()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.end_stream()
        if self._patience is not None:
            self._patience.cancel()
        self._connections.alive.discard(self)
        super().connection_lost(exc)

    def cut(self) -> None:
        """aiohttp forgets its transport as soon as it has asked it to close."""
        if self._wire is not None:
            self._wire.abort()

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
        return as_aiohttp(Answer(request, status_response(error), keep_alive=False))


class Answer:
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
            await cast(Connection, self._raw.protocol).stream(writer, body)
            await writer.write_eof()
        except ConnectionError:
            raise
        except Exception as error:
            log.exception("stream failed method=%s path=%s", self._raw.method, self._raw.raw_path)
            raise ConnectionResetError("the stream failed half way") from error
        finally:
            await close_body(body)


def as_aiohttp(answer: Answer) -> web.StreamResponse:
    return cast(web.StreamResponse, answer)


async def close_body(body: AsyncIterator[bytes]) -> None:
    close = getattr(body, "aclose", None)
    if close is not None:
        await close()
