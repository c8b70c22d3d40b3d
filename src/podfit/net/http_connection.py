"""One HTTP/1.1 connection of a client: requests in order, responses, keep-alive and upgrade.

One task answers a connection's requests one after the other, as its two halves give them (`http_intake`) and write what
is answered (`http_outlet`). Of aiohttp only the parser is used: its server's second task for each request, its request
and response objects and its timers cost several times what the parser does.
"""

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable
from typing import Protocol, cast

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from podfit.core.errors import ApiError
from podfit.net.guard import internal_error, status_response
from podfit.net.http_intake import BrokenBody, Intake, forget_frames
from podfit.net.http_outlet import Outlet
from podfit.net.http_syntax import BadRequest, NoRoom, parse_error
from podfit.net.memory_budget import KEPT, RECEIVED, UNSENT, Account, MemoryBudget
from podfit.net.streams import close, write_to
from podfit.net.wire import LARGE, Pieces, Response, Shared, Upgrade

log = logging.getLogger(__name__)

IDLE_SECONDS = 90.0
FIRST_SECONDS = 30.0  # for the first request's headers: who connects and says nothing is not waited for
LINGER_SECONDS = 5.0  # for the rest of a body that nobody wants, so that the client comes to read why
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STALLED_SECONDS = 60.0  # in which a client that is sent something has to take
LEAST_TAKEN = 64 * 1024  # bytes, when it does not take all that is there
HIGH_WATER = 16 * 1024  # bytes on either side of TLS beyond which a connection is full
OF_FULL = 256 * 1024  # bytes that wait in this process then: a slice, and another one in the socket's own queue
OF_LARGE = 160 * 1024  # bytes that TLS keeps of a large body and a large answer as long as the connection lasts
MOST_COUNTED = 8 * 1024 * 1024  # bytes of an answer's own body: a larger one is not refused, and none is made twice
LOOKS = (0.01, 0.25)  # seconds between two looks whether all has left, at first and at last
_TCP_INFO = struct.Struct("120xQ16xI")  # struct tcp_info of linux/tcp.h: tcpi_bytes_acked, tcpi_notsent_bytes


class Answering(Protocol):
    async def __call__(self, connection: "Connection", message: RawRequestMessage, payload: StreamReader) -> Response:
        """Raises Refused for a request that cannot be read."""


class Connected(Protocol):
    """What a connection needs of all of its server's (`http_accept`)."""

    answering: Answering
    alive: "set[Connection]"
    waiting: dict[Intake, None]
    closing: bool
    buffer: memoryview
    budget: MemoryBudget

    def ended(self, connection: "Connection") -> None:
        """It is gone."""


class _Changed:
    """A connection of another protocol, as `wire.Duplex`."""

    __slots__ = ("_intake", "_outlet")

    def __init__(self, intake: Intake, outlet: Outlet) -> None:
        self._intake, self._outlet = intake, outlet

    @property
    def ready(self) -> bool:
        return self._outlet.ready

    def write(self, data: bytes) -> None:
        self._outlet.write(data)

    async def drained(self) -> None:
        await self._outlet.drained()

    async def read(self) -> bytes:
        return await self._intake.read_raw()


class Connection(Intake):
    def __init__(self, connections: Connected) -> None:
        super().__init__(connections.buffer, connections.waiting)
        self._connections = connections
        self._stall: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None  # at what has been written and has not left
        self._all_left: asyncio.Future[None] | None = None
        self._large = False  # whether TLS keeps the room of a large body or answer
        self._outlet = Outlet(self._loop)
        self._timer: asyncio.TimerHandle | None = None
        self._streaming = False
        self._pieces: Pieces | None = None  # that are being sent
        self._changed = False  # to another protocol
        self.task: asyncio.Task[None] | None = None
        self.peer_certificate: bytes | None = None
        self.remote = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        if (limit := getattr(transport, "set_read_buffer_limits", None)) is not None:  # of TLS
            limit(HIGH_WATER)
        self._outlet.opened(self._transport)
        self._connections.alive.add(self)
        self._identify(self._transport)
        self.account = Account(self._connections.budget, self.remote, self.gives_way)
        self._timer = self._loop.call_later(FIRST_SECONDS, self._check_timeouts)
        if self._connections.closing:
            self.end()
        self.task = self._loop.create_task(self._serve())

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.ended(self)
        self.stops_waiting()
        if self._timer is not None:
            self._timer.cancel()
        self._cancel_stall()
        self._cancel_look()
        self.lost()
        self._outlet.lost()
        self.account.close()
        self.finish()
        self._timer = self._stall = None  # these refer to the connection

    def pause_writing(self) -> None:
        self._outlet.pause()
        if not self._unsent(OF_FULL + (self._pieces.waiting if self._pieces is not None else 0)):
            return
        self._large = True
        if self._changed:  # somebody may look at what they were sent; a peer that is dead is found by keepalive
            return
        self.waits()
        self._watch_stall()

    def resume_writing(self) -> None:
        self._cancel_stall()
        self.stops_waiting()
        self.account.moves(OF_FULL)
        self._outlet.resume()

    def gives_way(self) -> None:
        log.debug(
            "no room for what the client does not send or take remote=%s party=%s", self.remote, self.account.party
        )
        if self._waiter is not None and not self._head_size:
            self.finish()
        else:
            self.cut()

    def finish(self) -> None:
        """Answer what is being answered, end a stream where it waits, and close."""
        self.end()
        if self._streaming and self.task is not None:
            self._streaming = False
            self.task.cancel()

    def received(self, size: int) -> None:
        """A body of so many bytes, which came after its head."""
        self._large = self._large or size > LARGE

    def send_continue(self) -> None:
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
                self.account.busy = True
                try:
                    keep = await self._exchange(*asked)
                finally:
                    self.account.busy = False
                    if self._outlet.written > LARGE or self.account.held or self.account.until_sent is not None:
                        self._leaves()
                if not keep:
                    return
        except ConnectionError as error:
            log.debug("client has left remote=%s", self.remote)
            forget_frames(error)
        except Exception:
            log.exception("connection failed remote=%s", self.remote)
        finally:
            if self._transport is not None:
                self._transport.close()
            self.task = None

    async def _exchange(self, message: RawRequestMessage | HttpProcessingError, payload: StreamReader) -> bool:
        """Answer a request; whether there can be another."""
        if self._look is not None:
            await self._until_all_left()
        if isinstance(message, HttpProcessingError):
            error = parse_error(message)
            log.debug("malformed request remote=%s error=%s", self.remote, error.message)
            await self._outlet.send(status_response(error), "GET", chunked=True, keep=False)
            return False
        keep, wanted = not message.should_close, True
        try:
            response = await self._connections.answering(self, message, payload)
        except BadRequest as refusal:
            response, keep = status_response(refusal.error), False
            wanted = not isinstance(refusal, NoRoom)
        keep = keep and not self.last
        if response.upgrade is not None:
            await self._change(response, response.upgrade, message.method)
            return False
        if isinstance(response.body, bytes):
            await self._send(response, message.method, keep=keep)
        else:
            keep = await self._stream(response.body, response, message, keep=keep)
        if payload is not EMPTY_PAYLOAD:
            if not payload.is_eof() and wanted:
                keep = await self._drain_body(payload) and keep
            forget_frames(payload.exception())
        return keep

    async def _send(self, response: Response, method: str, *, keep: bool) -> None:
        body = response.body
        assert isinstance(body, bytes)
        if len(body) > LARGE and not isinstance(body, Shared) and not self._unsent(min(len(body), MOST_COUNTED)):
            return
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
        self._pieces = body if isinstance(body, Pieces) else None
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
            self._pieces = None
            await close(body)
        return keep and not self._ending

    async def _change(self, response: Response, upgrade: Upgrade, method: str) -> None:
        if not self.may_change:
            refused = ApiError(400, "BadRequest", "Upgrade request required")
            await self._outlet.send(status_response(refused), method, chunked=False, keep=False)
            return
        self._outlet.change(response)
        self._changed = True
        await self._ended_with_us(upgrade(_Changed(self, self._outlet)))

    async def _streamed(self, body: AsyncIterator[bytes]) -> None:
        """Until the iterator ends or `finish` is called."""
        if not self._ending:
            await self._ended_with_us(write_to(body, self._outlet))

    async def _ended_with_us(self, work: Awaitable[None]) -> None:
        """Until it ends or `finish` is called."""
        task = self.task
        assert task is not None
        self._streaming = True
        try:
            await work
        except asyncio.CancelledError:
            if self._streaming:  # it was somebody else
                raise
            task.uncancel()
        self._streaming = False

    async def _drain_body(self, payload: StreamReader) -> bool:
        """Read what is left of a body; whether it came to its end."""
        self.wants_body()
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
        self.peer_certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        self.remote = transport.get_extra_info("peername", ("",))[0]

    def _cancel_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()

    def _watch_stall(self) -> None:
        self._cancel_stall()
        self._stall = self._loop.call_later(STALLED_SECONDS, self._stalled, self._kernel()[0])

    def _stalled(self, before: int) -> None:
        """A client that takes nothing is cut off, whatever it was promised: it would hold it for ever."""
        if self._kernel()[0] - before < LEAST_TAKEN:
            log.info("client does not read remote=%s", self.remote)
            self.cut()
        else:
            self._watch_stall()

    def _kernel(self) -> tuple[int, int]:
        """Bytes that the client has taken so far, and those that wait in the kernel to be sent."""
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        if sock is None or sock.fileno() < 0:
            return 0, 0
        taken, waiting = _TCP_INFO.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size))
        return taken, waiting

    def _unsent(self, size: int) -> bool:
        """So many bytes wait for the client; False when the connection is cut because there is no room for them."""
        held = self.account.holds(UNSENT)
        if size <= held:
            return True
        if not self.account.hold(UNSENT, size):
            self.gives_way()
            return False
        if not held:
            self.account.moves(size)
        return True

    def _leaves(self) -> None:
        """An answer was written. The process has none of it any more when the kernel has sent all that it took."""
        outlet = self._outlet
        self.account.answered()
        self.account.hold(RECEIVED, 0)
        if (outlet.written > LARGE or self.account.holds(UNSENT)) and self._kernel()[1] and self._unsent(OF_FULL):
            self._large = True
            self._watch_stall()
            self._look_in(LOOKS[0])
            return
        if outlet.written > LARGE:
            outlet.written = 0
        self._has_left()

    def _has_left(self) -> None:
        account = self.account
        account.sent()
        if account.holds(UNSENT):
            account.hold(UNSENT, 0)
        if self._large and not account.hold(KEPT, OF_LARGE):
            self.finish()

    def _look_in(self, seconds: float) -> None:
        self._look = self._loop.call_later(seconds, self._look_again, seconds)

    def _look_again(self, seconds: float) -> None:
        if self._outlet.has_room and not self._kernel()[1]:
            self._cancel_look()
            self._cancel_stall()
            self._outlet.written = 0
            self._has_left()
        else:
            self._look_in(min(2 * seconds, LOOKS[1]))

    async def _until_all_left(self) -> None:
        """Before the next answer: a client that asks and does not read what it gets is not answered any more."""
        self._look_again(LOOKS[0] / 2)
        if self._look is not None:
            self._all_left = self._loop.create_future()
            await self._all_left

    def _cancel_look(self) -> None:
        look, self._look = self._look, None
        if look is not None:
            look.cancel()
        waiter, self._all_left = self._all_left, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _check_timeouts(self) -> None:
        """One timer for each connection looks now and then; restarting one with each request would cost more."""
        idle = self._loop.time() - self._idle_since if self._waiter is not None else 0.0
        if not self._heard:
            self.cut()
        elif idle >= IDLE_SECONDS:
            self.finish()
        else:
            self._timer = self._loop.call_later(IDLE_SECONDS - idle, self._check_timeouts)
