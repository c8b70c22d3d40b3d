"""Transports: requests over HTTPS, or by a call in the same process.

Both carry the same `Request` and `Response`, so nothing above this file can tell them apart.
"""

import asyncio
from typing import Protocol

from podfit.net.guard import answer
from podfit.net.http_client import HttpsClient
from podfit.net.reachability import READ_SECONDS
from podfit.net.wire import Handler, Identity, Request, Response

BEGUN_BYTES = 16 * 1024
"""Of bodies of requests that one client begins in a turn of the event loop: about 8 ms of work."""
READ, WRITE = 256, 4096
"""What a request counts for without its body: a small patch may be of a large object."""
STREAM_SECONDS = 600.0  # longest silence of a watch without timeoutSeconds; bookmarks come about every minute


class Transport(Protocol):
    near: bool
    """Whether the server is in this process: it is there as long as we are, so a stream need not be moved."""

    async def send(self, request: Request) -> Response:
        """Raises ConnectionError when there is no answer."""

    async def close(self) -> None: ...


class Https:
    """To a server over TLS; the credentials are the client's."""

    near = False

    def __init__(self, client: HttpsClient) -> None:
        self._client = client

    async def send(self, request: Request) -> Response:
        return await self._client.send(request, read_timeout=_patience(request))

    async def close(self) -> None:
        await self._client.close()


class Local:
    """To a handler in this process. `identity` stands in for authentication; everything behind it still runs.

    Requests that are sent side by side do not begin in one turn of the event loop.
    """

    near = True

    def __init__(self, handler: Handler, identity: Identity) -> None:
        self._handler = handler
        self._identity = identity
        self._begun = 0
        self._may_begin = asyncio.Event()
        self._may_begin.set()

    async def send(self, request: Request) -> Response:
        while not self._may_begin.is_set():
            await self._may_begin.wait()
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._begun += (READ if request.method == "GET" else WRITE) + len(request.body)
        if self._begun >= BEGUN_BYTES:
            self._may_begin.clear()
        return await answer(self._handler, request.with_identity(self._identity))

    async def close(self) -> None:
        """Nothing is held open."""

    def _next_turn(self) -> None:
        self._begun = 0
        self._may_begin.set()


def _patience(request: Request) -> float | None:
    """How long the server may stay silent: a follower of logs waits for ever, a watch beyond the end it asked for."""
    if request.param("follow") in ("1", "true"):
        return None
    if request.param("watch") in ("1", "true"):
        return float(request.param("timeoutSeconds") or STREAM_SECONDS) + READ_SECONDS
    return READ_SECONDS
