"""The HTTPS client: one server, one pool of connections, the same `Request` and `Response` as everywhere.

An answer whose length is announced is read whole, so its connection is free again at once. One without a length (watch,
log -f, a server that compresses) is streamed: iterate the body, or close it to hang up.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias
from weakref import WeakSet

import aiohttp
from aiohttp import ClientResponse  # all of it is loaded before its parts
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from podfit.net.reachability import CONNECT_SECONDS, DIRECT, READ_SECONDS, ConnectionRoute, Unreachable, target_of
from podfit.net.wire import Request, Response

Dial: TypeAlias = Callable[[], Awaitable[Sequence[tuple[str, int]]]]
"""Where a server is now: hosts and ports, tried in turn. Raises OSError when it is nowhere."""

PARSED = 16 * 1024  # bytes at once
MOST_INTERIM = 16  # before an answer
CLOSING_TURNS = 10  # of the event loop


class HttpsClient:
    """Talks to one server, `https://host:port`. `token` is asked for with every request, because tokens rotate.
    Of one that is not `trusted` answers come as they are sent, in pieces and not decompressed: a small one could be a
    large one. With `dial` the server's name is one for certificates only, and each new connection asks where it leads.
    With `dead_after` a machine that acknowledges nothing for so many seconds is taken for gone, also while nothing is
    sent to it; else that is noticed by silence only (`read_timeout`).
    """

    def __init__(
        self,
        server: str,
        tls: ssl.SSLContext,
        *,
        token: Callable[[], str] | None = None,
        reach: ConnectionRoute = DIRECT,
        connect_timeout: float = CONNECT_SECONDS,
        dial: Dial | None = None,
        trusted: bool = True,
        dead_after: float = 0.0,
    ) -> None:
        self._dead_after = dead_after
        self._trusted = trusted
        self.server = server.rstrip("/")
        self._tls = tls
        self._token = token
        self._reach = reach
        self._connect_timeout = connect_timeout
        self._dial = dial
        self._session: aiohttp.ClientSession | None = None
        self._sockets: WeakSet[socket.socket] = WeakSet()

    async def send(
        self, request: Request, *, read_timeout: float | None = READ_SECONDS, more: Sequence[tuple[str, str]] = ()
    ) -> Response:
        """`read_timeout` is the longest silence, in seconds, before or between pieces of the answer; `more` are headers
        whose names may repeat. Raises `Unreachable`, here or out of a streamed body.
        """
        try:
            answer = await self._connected().request(
                request.method,
                URL(self.server + target_of(request), encoded=True),
                headers=self._headers(request, more),
                data=request.body or None,
                allow_redirects=False,
                proxy=self._reach.proxy or None,
                server_hostname=self._reach.server_name or None,
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=None, sock_connect=self._connect_timeout, sock_read=read_timeout
                ),
            )
            headers = {name.lower(): value for name, value in answer.headers.items()}
            whole = self._trusted and "content-length" in headers
            if not whole and request.method != "HEAD" and answer.status not in (204, 304):
                return Response(answer.status, headers, _Stream(answer, self._unreachable))
            return Response(answer.status, headers, await answer.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def close(self) -> None:
        """Leaves no socket open, whatever the server does."""
        if self._session is None:
            return
        await self._session.close()
        self._session = None
        for dialed in self._sockets:  # aiohttp forgets where it said goodbye before, and waits for the answer there
            with suppress(OSError):
                dialed.shutdown(socket.SHUT_RDWR)
        for _ in range(CLOSING_TURNS):
            if all(dialed.fileno() == -1 for dialed in self._sockets):
                return
            await asyncio.sleep(0)

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            resolver = _Dialling(self._dial) if self._dial is not None else None
            connector = aiohttp.TCPConnector(
                ssl=self._tls,
                limit=0,
                keepalive_timeout=60,
                resolver=resolver,
                use_dns_cache=resolver is None,
                socket_factory=self._new_socket,
            )
            if not self._trusted:  # by a private name: nothing public bounds the interim answers that aiohttp keeps
                guarded: type[ResponseHandler] = _Guarded
                connector._factory = partial(guarded, loop=asyncio.get_running_loop())
            self._session = aiohttp.ClientSession(
                connector=connector, read_bufsize=256 * 1024, auto_decompress=self._trusted
            )
        return self._session

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(*address[:3])
        if self._dead_after:
            _notice_death(made, self._dead_after)
        self._sockets.add(made)
        return made

    def _headers(self, request: Request, more: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        headers = dict(request.headers)
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token()}"
        if request.body:
            headers.setdefault("content-type", "application/json")
        return [*headers.items(), *self._reach.headers, *more]

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"{self.server}: {str(error) or type(error).__name__}")


class _Guarded(ResponseHandler):
    """Gives up a server that announces and announces an answer. aiohttp keeps all interim answers (1xx) that come, as
    fast as they come; so what comes is parsed a little at a time, and counted."""

    _interim = 0

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PARSED):
            if self._interim > MOST_INTERIM:
                return
            super().data_received(data[start : start + PARSED])

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        self._interim = self._interim + 1 if data[0].code < 200 else 0
        if self._interim <= MOST_INTERIM:
            super().feed_data(data, size)
        elif self.transport is not None:
            self.set_exception(aiohttp.ServerDisconnectedError("too many interim answers"))
            self.transport.abort()


def _notice_death(connection: socket.socket, seconds: float) -> None:
    """Notices it by the kernel's probes; where it has not all of these options, by those it has."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    half = max(1, round(seconds / 2))
    for name, value in (
        ("TCP_KEEPIDLE", half),
        ("TCP_KEEPINTVL", max(1, half // 2)),
        ("TCP_USER_TIMEOUT", round(seconds * 1000)),
    ):
        if (option := getattr(socket, name, None)) is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


class _Dialling(AbstractResolver):
    """Leads the connector to the addresses that are told, whatever the name."""

    def __init__(self, dial: Dial) -> None:
        self._dial = dial

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=number, family=family, proto=0, flags=socket.AI_NUMERICHOST)
            for address, number in await self._dial()
        ]

    async def close(self) -> None:
        """Nothing is held."""


class _Stream:
    """The pieces of an answer. A class and not a generator: closing a generator that never began would not hang up."""

    def __init__(self, answer: ClientResponse, unreachable: Callable[[Exception], Unreachable]) -> None:
        self._answer = answer
        self._unreachable = unreachable

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._answer.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            await self.aclose()
            raise self._unreachable(error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Hang up, unless the answer was read to its end; then the connection has been given back already."""
        if (connection := self._answer.connection) is not None and connection.transport is not None:
            connection.transport.abort()  # `close` alone would wait for the server's half of closing TLS
        self._answer.close()
