"""What passes between a client and a server, whatever carries it.

A `Handler` is any coroutine function from `Request` to `Response`. The HTTPS server turns sockets into calls of one;
`client.transport.Local` calls one directly. That is why a component cannot tell whether it shares a process with the
API server.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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


class Request(msgspec.Struct, frozen=True):
    """One request. Header names are lower case; `query` keeps repeated keys in order.

    `peer_certificate` is the DER of a client certificate that the server has verified; when one was shown that it could
    not verify, `untrusted` says why and `peer_certificate` is None. `identity` is set only by an in-process transport,
    where it stands in for authentication.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    headers: Headers = msgspec.field(default_factory=dict)
    body: bytes = b""
    peer_certificate: bytes | None = None
    remote: str = ""
    identity: Identity | None = None
    untrusted: str = ""

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


@runtime_checkable
class Poured(Protocol):
    """A stream that can also be told to write into a sink by itself, at the moment in which something happens."""

    async def pour(self, sink: Sink) -> None:
        """Until the end of the stream."""


Body: TypeAlias = bytes | AsyncIterator[bytes]


class Response(msgspec.Struct, frozen=True):
    """One answer. A body that is an async iterator is streamed, each item flushed as it comes (watch, log -f);
    closing the iterator (`aclose`) is how the receiver says that it has left.
    """

    status: int = 200
    headers: Headers = msgspec.field(default_factory=dict)
    body: Body = b""

    async def read(self) -> bytes:
        """The whole body, streamed or not."""
        if isinstance(self.body, bytes):
            return self.body
        return b"".join([chunk async for chunk in self.body])


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
