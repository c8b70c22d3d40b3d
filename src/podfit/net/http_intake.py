"""The reading half of a connection: bytes in, requests out, one after the other.

aiohttp's parser reads them, because it is strict where HTTP invites smuggling. The bytes come through a buffer that all
connections share (`asyncio.BufferedProtocol`), since each read is parsed before the next begins; with TLS that costs a
third of what a protocol does that is handed its bytes.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from podfit.net.http_parser import (
    EMPTY_PAYLOAD,
    HttpProcessingError,
    HttpRequestParser,
    RawRequestMessage,
    StreamReader,
)
from podfit.net.http_syntax import HEADER_LIMIT, HEADERS_LIMIT, TARGET_LIMIT

READ = 64 * 1024  # bytes at once
MOST_WAITING = 16  # requests that a client may have sent ahead; more are read when these are answered
_MANY, _SLOW = 1, 2  # why nothing is read: requests that wait, a body that nobody reads as fast

Asked = tuple[RawRequestMessage | HttpProcessingError, StreamReader]
"""A request, or what is wrong with it, and its body."""


class BrokenBody(Exception):
    """A body that cannot be read to its end."""


class Intake(asyncio.BufferedProtocol):
    """Requests wait here until `next_request` takes them. `buffer` may be shared by all of a loop's."""

    def __init__(self, buffer: memoryview) -> None:
        self._loop = asyncio.get_running_loop()
        self._buffer = buffer
        self._parser = HttpRequestParser(
            cast(Any, self), self._loop, READ, max_line_size=TARGET_LIMIT, max_field_size=HEADER_LIMIT,
            max_headers=HEADERS_LIMIT, payload_exception=BrokenBody, auto_decompress=False)
        self._transport: asyncio.Transport | None = None
        self._asked: deque[Asked] = deque()
        self._payload = EMPTY_PAYLOAD  # the body that is arriving
        self._waiter: asyncio.Future[None] | None = None
        self._idle_since = 0.0
        self._heard = False  # a whole request
        self._deaf = False  # what comes from now on is not looked at
        self._ending = False  # and nothing that waits is answered
        self._held = 0

    @property
    def last(self) -> bool:
        """Whether no request can follow the one that was taken last."""
        return self._ending or (self._deaf and not self._asked)

    async def next_request(self) -> Asked | None:
        """None when there will be no other."""
        while not self._asked and not self._ending and not (self._deaf and self._heard):
            self._waiter = self._loop.create_future()
            self._idle_since = self._loop.time()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._ending or not self._asked:
            return None
        asked = self._asked.popleft()
        if self._held and not self._asked:
            self._release(_MANY)
        return asked

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._deaf:
            return
        messages: Sequence[Asked]
        try:
            messages, upgraded, _ = self._parser.feed_data(bytes(self._buffer[:nbytes]))
            self._deaf = upgraded  # to a protocol that is not spoken here: what follows cannot be read as requests
        except HttpProcessingError as error:
            self._deaf = True
            self._break_off(BrokenBody(str(error)))
            messages = ((error, EMPTY_PAYLOAD),)
        if not messages:
            return
        self._heard, self._payload = True, messages[-1][1]
        self._asked.extend(messages)
        if len(self._asked) >= MOST_WAITING:
            self._hold(_MANY)
        self._wake()

    def end(self) -> None:
        """Take nothing more."""
        self._ending = self._deaf = True
        self._wake()

    def lost(self) -> None:
        """The socket is gone."""
        self._transport = None
        self._asked.clear()
        self._break_off(ConnectionResetError("the client has left"))
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
            self._payload.set_exception(reason)

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
