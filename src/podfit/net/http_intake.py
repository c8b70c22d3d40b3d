"""The reading half of a connection: parses bytes into requests.

aiohttp's parser reads them, because it is strict where HTTP invites smuggling. The bytes come through a buffer that all
connections share (`asyncio.BufferedProtocol`), since each read is parsed before the next begins; with TLS that costs a
third of what a protocol does that is handed its bytes.

The parser is given one request at a time, and what follows it is kept until that is taken, so a thousand requests in
one read are parsed one after the other, as they are answered. It forgives a request line that HTTP's grammar does not
have (blanks, empty lines before it) and an empty `Transfer-Encoding`, which it takes for no body; these are refused
here.

Nothing of a body is read before somebody wants it, and what waits here is counted (`memory_budget`).

It would give the last trailer of a chunked body to the next request as a header. So behind a chunked body it is given a
request of ours (`PROBE`). What comes out beside its own header was a trailer, which is refused. When anything else
comes out, more was sent ahead, and the connection ends with the answer.
"""

import asyncio
import re
import secrets
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError
from aiohttp.http_parser import HttpRequestParser, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from podfit.net.http_syntax import HEAD_LIMIT, HEADER_LIMIT, HEADERS_LIMIT, TARGET_LIMIT
from podfit.net.memory_budget import RECEIVED, Account

READ = 32 * 1024  # bytes at once: a body in chunks of one byte costs 1 ms of parsing a KiB
MOST_WAITING = 2  # requests that a client may have sent ahead; more are read when these are answered
_MANY, _SLOW, _FULL, _UNWANTED = 1, 2, 4, 8
"""Why nothing is read: requests that wait, a body or a stream that nobody reads as fast, a body that nobody wants."""
UNCOUNTED = 4096  # bytes of a head or of another protocol: what every connection may hold
MOST_RAW = 256 * 1024  # bytes of another protocol that wait

PROBE_PATH = f"/{secrets.token_hex(16)}"
PROBE = f"GET {PROBE_PATH} HTTP/1.1\r\nHost: probe\r\n\r\n".encode()

REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~\x80-\xff]+ HTTP/1\.[01]\r\n")  # RFC 9112, section 3
HEAD_END = b"\r\n\r\n"
LINE = TARGET_LIMIT + 100  # bytes: the parser takes no longer request line
_ENDLESS = 1 << 62  # bytes, of a body in chunks: the parser knows its end

_OF_TRAILERS = ("Duplicate", "Too many headers")  # how the parser's complaints of headers begin

Asked = tuple[RawRequestMessage | HttpProcessingError, StreamReader]
"""A request, or what is wrong with it, and its body."""


class BrokenBody(Exception):
    """A body that cannot be read to its end."""


def forget_frames(error: BaseException | None) -> None:
    """Forgets the frames of an error that a request or a body keeps. They refer to the connection, so the connection
    would stay in memory until Python looks for cycles among old objects, which it seldom does."""
    if error is not None:
        error.__traceback__ = None


class Intake(asyncio.BufferedProtocol):
    """Requests wait here until `next_request` takes them. `buffer` may be shared by all of a loop's; `waiting` are
    those of a server's that wait for their client."""

    account: Account  # of the whole connection; there before anything is read

    def __init__(self, buffer: memoryview, waiting: "dict[Intake, None]") -> None:
        self._waiting = waiting
        self._loop = asyncio.get_running_loop()
        self._buffer = buffer
        self._parser: Any = HttpRequestParser(
            cast(Any, self),
            self._loop,
            READ,
            max_line_size=TARGET_LIMIT,
            max_field_size=HEADER_LIMIT,
            max_headers=HEADERS_LIMIT,
            payload_exception=BrokenBody,
            auto_decompress=False,
            max_msg_queue_size=1,
        )
        self._transport: asyncio.Transport | None = None
        self._line = b""  # of the head that is arriving: how it begins,
        self._head_size = 0  # how many bytes have come
        self._last_seen = b""  # and its last three
        self._complete = False
        self._body_left = 0  # bytes of its body that are to come
        self._wanted = False  # and whether somebody reads it
        self._rest = bytearray()  # what came behind it
        self._asked: deque[Asked] = deque()
        self._payload = EMPTY_PAYLOAD  # the body that is arriving
        self._chunked = False  # and whether it may end with trailers
        self._last = False  # whether no request can follow it: the client said so, or wants another protocol
        self._waiter: asyncio.Future[None] | None = None
        self._idle_since = 0.0
        self._heard = False  # a whole request
        self._deaf = False  # what comes from now on is not looked at
        self._ending = False  # and nothing that waits is answered
        self._held = 0
        self._raw: bytearray | None = None  # what came behind a request for another protocol
        self._raw_waiter: asyncio.Future[None] | None = None

    @property
    def last(self) -> bool:
        """Whether no request can follow the one that was taken last."""
        return self._ending or (self._deaf and not self._asked)

    async def next_request(self) -> Asked | None:
        """None when there will be no other."""
        if self._rest and not self._asked:
            self._parse(b"")
            if not self._asked:  # the beginning of a head: the rest of it has to be read
                self._release(_MANY)
        if self._asked:  # sent ahead: other connections have their turn first
            await asyncio.sleep(0)
        while not self._asked and not self._ending and not (self._deaf and self._heard):
            self._waiter = self._loop.create_future()
            self._idle_since = self._loop.time()
            self.waits()
            try:
                await self._waiter
            finally:
                self._waiter = None
                self.stops_waiting()
        if self._ending or not self._asked:
            return None
        asked = self._asked.popleft()
        if self._held and not self._asked:
            self._release(_MANY)
        return asked

    def waits(self) -> None:
        """For the client, from now on."""
        self._waiting[self] = None

    def stops_waiting(self) -> None:
        self._waiting.pop(self, None)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._parse(bytes(self._buffer[:nbytes]))
        if self._rest or len(self._asked) >= MOST_WAITING:
            self._hold(_MANY)

    def wants_body(self) -> None:
        """The body of the request that was taken last."""
        self._wanted = True
        self._release(_UNWANTED)

    def gives_way(self) -> None:
        """Close the connection, because there is no room for what it holds."""
        if self._transport is not None:
            self._transport.abort()

    def _parse(self, data: bytes) -> None:
        """Parses as far as the end of a request."""
        if self._raw is not None:
            self._keep(data)
            return
        if self._deaf:
            return
        if self._rest:
            data = bytes(self._rest) + data
            self._rest.clear()
        if not self._body_left:
            head, data = self._to_head_end(data)
            self._feed(head)
        if data and self._body_left:
            body, data = data[: self._body_left], data[self._body_left :]
            self._body_left -= len(body)
            self._feed(body)
        if data:
            self._set_aside(data)
        if not self._wanted and self._payload is not EMPTY_PAYLOAD:
            self._await_reader()

    def _set_aside(self, data: bytes) -> None:
        """What came behind a request."""
        if self._raw is not None:
            self._keep(data)
        elif not self._deaf:
            self._rest += data

    def _await_reader(self) -> None:
        """Waits for the reader of a body, unless all of it is there."""
        if not self._payload.is_eof():
            self._hold(_UNWANTED)
        elif self._held:
            self._release(_UNWANTED)

    def _to_head_end(self, data: bytes) -> tuple[bytes, bytes]:
        """What belongs to the head that is arriving, and the rest."""
        if not self._head_size and (end := data.find(HEAD_END)) >= 0:  # all at once, as heads mostly come
            end += len(HEAD_END)
            self._line, self._head_size, self._complete = data, end, True
            return data[:end], data[end:]
        if len(self._line) < LINE and b"\n" not in self._line:
            self._line += data[:LINE]
        seen, self._complete = self._last_seen, True
        end = (seen + data).find(HEAD_END) + len(HEAD_END) - len(seen)
        if end < len(HEAD_END) - len(seen):
            self._last_seen, self._complete = (seen + data)[1 - len(HEAD_END) :], False
            end = len(data)
        self._head_size += end
        return data[:end], data[end:]

    def _feed(self, data: bytes) -> None:
        try:
            messages: Sequence[Asked] = self._parser.feed_data(data)[0]
            if messages:
                self._begun(messages[0])
            elif self._head_size:
                self._check_head()
        except HttpProcessingError as error:
            self._deaf = True
            self._break_off(BrokenBody(str(error)))
            forget_frames(error)
            messages = ((error, EMPTY_PAYLOAD),)
        if messages:
            self._heard = True
            self._asked.append(messages[0])
        if self._last and self._payload.is_eof():
            self._deaf = True
            self._look_for_change()
        elif self._chunked and self._payload.is_eof():
            self._chunked = False
            self._body_left = 0
            self._look_for_trailers()
        if messages:
            self._wake()

    def _begun(self, asked: Asked) -> None:
        """A request whose head is complete. Raises HttpProcessingError for one that the parser should have refused."""
        message, self._payload = asked
        assert isinstance(message, RawRequestMessage)
        line = REQUEST_LINE.match(self._line)
        self._forget_head()
        self._wanted = False
        if not line or not self._complete:
            raise BadHttpMessage("the request line is not one of HTTP/1.1")
        if not message.headers.get("Transfer-Encoding", "chunked").strip():
            raise BadHttpMessage("the transfer encoding is empty")
        self._chunked, self._last = message.chunked, message.should_close or message.upgrade
        self._body_left = _ENDLESS if message.chunked else int(message.headers.get("Content-Length", 0))

    def _check_head(self) -> None:
        """Checks a head that is not complete. Raises HttpProcessingError when it is too large."""
        if self._head_size > HEAD_LIMIT + TARGET_LIMIT:
            raise BadHttpMessage("Too many headers received")
        if self._head_size > UNCOUNTED and not self.account.hold(RECEIVED, 3 * self._head_size):  # as texts, too
            self.gives_way()

    def _forget_head(self) -> None:
        if self._head_size > UNCOUNTED:
            self.account.hold(RECEIVED, 0)
        self._head_size, self._line, self._last_seen = 0, b"", b""

    def _look_for_change(self) -> None:
        """Whether what follows is another protocol's: the parser says so when it is asked to go on."""
        try:
            _, changes, rest = self._parser.feed_data(b"")
        except HttpProcessingError:
            return
        if changes:
            self._raw = bytearray(rest)

    def _look_for_trailers(self) -> None:
        """After this the parser is as new, or nothing more is read."""
        trailers, followed = False, True
        try:
            messages, _, _ = self._parser.feed_data(PROBE)
            if messages and messages[0][0].path == PROBE_PATH:
                trailers, followed = len(messages[0][0].raw_headers) > 1, False
        except HttpProcessingError as error:
            trailers = error.message.startswith(_OF_TRAILERS)
        self._deaf = trailers or followed
        if trailers:
            self._payload.set_exception(BrokenBody("trailers are not supported"))

    @property
    def may_change(self) -> bool:
        """Whether the client has asked for another protocol that this side could speak."""
        return self._raw is not None

    async def read_raw(self) -> bytes:
        """Of another protocol, what has come; empty when the client has left."""
        while not self._raw:
            if self._raw is None or self._transport is None:
                return b""
            self._raw_waiter = self._loop.create_future()
            try:
                await self._raw_waiter
            finally:
                self._raw_waiter = None
        data = bytes(self._raw)
        self._raw.clear()
        if len(data) > UNCOUNTED:
            self.account.hold(RECEIVED, 0)
        if self._held:
            self._release(_FULL)
        return data

    def _keep(self, data: bytes) -> None:
        if self._raw is None or not data:
            return
        self._raw += data
        if len(self._raw) > MOST_RAW:
            self._hold(_FULL)
        if len(self._raw) > UNCOUNTED and not self.account.hold(RECEIVED, len(self._raw)):
            self.gives_way()
        self._wake_raw()

    def _wake_raw(self) -> None:
        if self._raw_waiter is not None and not self._raw_waiter.done():
            self._raw_waiter.set_result(None)

    def end(self) -> None:
        """Take nothing more."""
        self._ending = self._deaf = True
        self._wake()

    def lost(self) -> None:
        """The socket is gone."""
        self._transport = None
        self._asked.clear()
        self._rest.clear()
        self._break_off(ConnectionResetError("the client has left"))
        self._parser = None  # it refers to this
        self._wake_raw()
        self.end()

    # ------------------------------------------------------------------ what a body asks for and tells

    @property
    def connected(self) -> bool:
        return self._transport is not None

    def pause_reading(self) -> None:
        """The body is not read as fast as it comes."""
        self._hold(_SLOW)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """It was read, or is complete."""
        self._release(_SLOW)

    def _break_off(self, reason: Exception) -> None:
        if not self._payload.is_eof():
            with suppress(BrokenBody, RuntimeError):  # of one that is broken, or waited for
                self._payload.read_nowait()  # which nobody will read any more
            self._payload.set_exception(reason)
        self._payload = EMPTY_PAYLOAD

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _hold(self, reason: int) -> None:
        if not self._held and self._transport is not None:
            self._transport.pause_reading()
        self._held |= reason

    def _release(self, reason: int) -> None:
        if self._held == reason and self._transport is not None:
            self._transport.resume_reading()
        self._held &= ~reason
