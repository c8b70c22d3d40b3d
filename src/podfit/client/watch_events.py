"""The events of a watch: read from its lines, and told as they come.

A line is read once in a process, however many watch the same. An `EventSink` is where an API server in the same process
writes the lines of its watches as it commits: whoever follows one is told without a task that is woken for it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable
from typing import Any, Generic, TypeVar, cast

import msgspec

from podfit.api.meta import codec
from podfit.api.meta.base import Struct
from podfit.core.bounded_cache import cached_within
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.net.wire import Response

T = TypeVar("T")
EVENTS = 2**20
"""Bytes of lines of watches whose events are kept for others who watch the same."""


BUSY_SECONDS = 0.005
"""Of those who are told; then others of this process have their turn before the next event."""
MOST_WAITING = 100
"""Lines; what comes beyond them waits where it comes from, which drops who is too slow."""


class Unreadable(ConnectionError):
    """An answer that is not what the API promises."""


class Event(Struct):
    type: str
    object: msgspec.Raw


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK; of a bookmark's object only the resource version counts."""

    type: str
    object: T


def object_of(data: bytes, kind: type[T]) -> T:
    """An answer and an event that tell the same are one object, however many are told."""
    return decoded(data.removesuffix(b"\n"), kind, codec.decode_shared)


def decoded(data: bytes | msgspec.Raw, kind: type[T], decode: Callable[[bytes, type[T]], T] = codec.decode) -> T:
    try:
        return decode(bytes(data), kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unreadable(f"the server's answer is not a {getattr(kind, '__name__', kind)}: {error}") from error


def event_of(line: bytes, kind: type[T]) -> "WatchEvent[T]":
    """All who watch the same in this process are told one event. Raises ApiError for an event ERROR."""
    read = _events if len(line) <= codec.LARGE else _event
    event: WatchEvent[T] = read(line, cast(Hashable, kind))
    return event


def _event(line: bytes, kind: Any) -> Any:
    event = decoded(line, Event)
    if event.type == "ERROR":
        raise ApiError.from_status(decoded(event.object, dict))
    return WatchEvent(event.type, object_of(bytes(event.object), kind))


_events = cached_within(EVENTS)(_event)


async def lines_of(response: Response) -> AsyncGenerator[bytes, None]:
    """The lines of a streamed answer, which may be cut anywhere."""
    if isinstance(response.body, bytes):
        for line in response.body.splitlines():
            yield line
        return
    rest = b""
    try:
        async for chunk in response.body:
            *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
            for line in lines:
                if line:
                    yield line
    finally:
        close = getattr(response.body, "aclose", None)
        if close is not None:
            await close()


class EventSink(Generic[T]):
    """Takes the lines of a watch, cut anywhere, and tells of their events in order, in the next turn of the event loop,
    or `at_once`, to who does next to nothing when told.

    Once that has taken `BUSY_SECONDS` the rest has the turn after. What fails, an ApiError of an event ERROR or
    `Unreadable`, is the end: raised to whoever writes, or waits until all is told.
    """

    def __init__(
        self, kind: type[T], tell: Callable[[WatchEvent[T]], None], clock: Clock, *, at_once: bool = False
    ) -> None:
        self._kind, self._tell, self._clock, self._at_once = kind, tell, clock, at_once
        self._waiting: deque[bytes] = deque()
        self._rest = b""
        self._due = False
        self._failure: Exception | None = None
        self._all_told: asyncio.Future[None] | None = None

    @property
    def ready(self) -> bool:
        return len(self._waiting) <= MOST_WAITING and self._failure is None

    def write(self, data: bytes) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._rest and data.find(b"\n") == len(data) - 1 != 0:  # a line, the very same for all, or nothing
            self._waiting.append(data)
        else:
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._waiting.extend(lines)
        if self._at_once and not self._due:
            self._turn()
        else:
            self._go_on()

    async def drained(self) -> None:
        """Wait until all is told."""
        if self._waiting:
            self._all_told = asyncio.get_running_loop().create_future()
            await self._all_told
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Nothing is told any more."""
        self._waiting.clear()

    def _go_on(self) -> None:
        if self._waiting and not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._due = False
        ends = self._clock.monotonic() + BUSY_SECONDS
        try:
            while self._waiting:
                if line := self._waiting.popleft():
                    self._tell(event_of(line, self._kind))
                    if self._waiting and self._clock.monotonic() > ends:
                        break
        except Exception as error:  # noqa: BLE001  (it is the reader's: raised to who waits)
            self._failure = error
            self._waiting.clear()
        self._go_on()
        if not self._waiting and self._all_told is not None and not self._all_told.done():
            self._all_told.set_result(None)
