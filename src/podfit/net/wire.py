"""`Request`, `Response` and `Handler`: what passes between a client and a server, over HTTP or in the process.

A `Handler` is any coroutine function from `Request` to `Response`. The HTTPS server turns sockets into calls of one;
`client.transport.Local` calls one directly. That is why a component cannot tell whether it shares a process with the
API server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec
from msgspec.structs import replace

Headers: TypeAlias = Mapping[str, str]


class Identity(msgspec.Struct, frozen=True):
    """Who asks. `extra` maps lower-case keys to values, as in a TokenReview."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Caller(Protocol):
    """The connection that a request came on, as who answers sees it."""

    def belongs_to(self, user: str) -> None:
        """Who asks, as soon as it is known: what the connection holds in memory is counted for them from then on."""

    def keep_until_sent(self, release: Callable[[], None]) -> None:
        """Have it called when the answer to this request has left, or the connection has ended."""

    @property
    def quiet(self) -> float:
        """Seconds in which its client has sent and taken nothing worth mentioning."""


class Request(msgspec.Struct, frozen=True):
    """One request. Header names are lower case; `query` keeps repeated keys in order. Of a header that was sent several
    times `headers` has the values joined by commas, and `repeated` has them as they came.

    `peer_certificate` is the DER of a client certificate that the server has verified. `identity` is set only by an
    in-process transport, where it stands in for authentication. `caller` is there when it came over a socket. With
    `unread` its body is not here, because nobody knew who sends it: the handler refuses it, if not for something else.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    headers: Headers = msgspec.field(default_factory=dict)
    body: bytes = b""
    peer_certificate: bytes | None = None
    remote: str = ""
    identity: Identity | None = None
    repeated: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    caller: Caller | None = None
    unread: bool = False

    def values_of(self, header: str) -> tuple[str, ...]:
        """The values of a header as they were sent: a comma inside of one separates nothing."""
        if header in self.repeated:
            return self.repeated[header]
        return (self.headers[header],) if header in self.headers else ()

    def param(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def with_identity(self, identity: Identity) -> "Request":
        return replace(self, identity=identity)


class Sink(Protocol):
    """Where a stream goes; `write` never waits."""

    @property
    def ready(self) -> bool:
        """Whether the receiver is there and keeps up."""

    def write(self, data: bytes) -> None: ...

    async def drained(self) -> None:
        """Wait until it is. Raises ConnectionError when it has left."""


class Duplex(Sink, Protocol):
    """A connection that has changed its protocol (HTTP's 101): bytes both ways."""

    async def read(self) -> bytes:
        """What has come since; empty when the other side has left."""


@runtime_checkable
class SelfWriting(Protocol):
    """A stream that can also be told to write into a sink by itself, at the moment in which something happens."""

    async def write_to(self, sink: Sink) -> None:
        """Until the end of the stream."""


SMALL_BODY = 64 * 1024
"""Bytes: the largest body of who is nobody, and of servers that are only asked for something."""


LARGE = 32 * 1024
"""Bytes of a body or of answers: below it all is in the kernel when it is written."""


LARGEST_JOINED = 8 * 2**20
"""Bytes of `Pieces` that are put together where something needs them whole."""


class Shared(bytes):
    """A body that somebody keeps anyway, so that an answer with it costs no memory of its own."""


class Pieces:
    """A whole body that is not put together at once: parts, joined to pieces, or cut into them, only as they are sent.
    `size` is about how many bytes it has in all."""

    def __init__(self, parts: Iterable[bytes | memoryview], *, size: int = 0, piece: int = 64 * 1024) -> None:
        self.size = size
        self._parts = iter(parts)
        self._piece = piece
        self._rest = memoryview(b"")
        self.waiting = 0
        """Bytes of the part that is being sent, when it was made for this answer; somebody else has those of a view."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)  # a receiver with much room would take all of it in one turn of the loop
        piece = bytearray()
        while len(piece) < self._piece:
            if not self._rest:
                part = next(self._parts, None)
                if part is None:
                    break
                self._rest = memoryview(part)
                self.waiting = len(part) if isinstance(part, bytes) else 0
            room = self._piece - len(piece)
            piece += self._rest[:room]
            self._rest = self._rest[room:]
        if not piece:
            raise StopAsyncIteration
        return bytes(piece)

    def joined(self) -> bytes:
        """What is left of it, which is nothing then."""
        rest, self._rest = self._rest, memoryview(b"")
        return b"".join((rest, *self._parts))


Body: TypeAlias = bytes | AsyncIterator[bytes]


Upgrade: TypeAlias = Callable[[Duplex], Awaitable[None]]
"""Speaks the other protocol until its end. It is called once, also when the client has left meanwhile, and cancelled
when it leaves: what it holds open is to be let go of."""


class Response(msgspec.Struct, frozen=True):
    """One answer. A body that is an async iterator is streamed, each item flushed as it comes (watch, log -f);
    closing the iterator (`aclose`) is how the receiver says that it has left. An answer of status 101 has an `upgrade`
    in place of a body.
    """

    status: int = 200
    headers: Headers = msgspec.field(default_factory=dict)
    body: Body = b""
    upgrade: Upgrade | None = None

    async def read(self, limit: int | None = None) -> bytes:
        """The whole body, streamed or not. Raises OSError when it is larger than `limit`, which is not waited for."""
        if isinstance(self.body, bytes):
            return self.body
        if limit is None:
            if isinstance(self.body, Pieces) and self.body.size <= LARGEST_JOINED:
                return self.body.joined()
            return b"".join([chunk async for chunk in self.body])
        parts, size = [], 0
        async for chunk in self.body:
            size += len(chunk)
            if size > limit:
                if (close := getattr(self.body, "aclose", None)) is not None:
                    await close()
                raise OSError(f"the answer is larger than {limit} bytes")
            parts.append(chunk)
        return b"".join(parts)


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
