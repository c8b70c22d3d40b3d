"""Transports: requests over HTTPS, or by a call in the same process.

Both carry the same `Request` and `Response`, so nothing above this file can tell them apart.
"""

from typing import Protocol

from podfit.net.guard import answer
from podfit.net.http_client import HttpsClient
from podfit.net.reachability import READ_SECONDS
from podfit.net.wire import Handler, Identity, Request, Response

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
    """To a handler in this process. `identity` stands in for authentication; everything behind it still runs."""

    near = True

    def __init__(self, handler: Handler, identity: Identity) -> None:
        self._handler = handler
        self._identity = identity

    async def send(self, request: Request) -> Response:
        return await answer(self._handler, request.with_identity(self._identity))

    async def close(self) -> None:
        """Nothing is held open."""


def _patience(request: Request) -> float | None:
    """How long the server may stay silent: a follower of logs waits for ever, a watch beyond the end it asked for."""
    if request.param("follow") in ("1", "true"):
        return None
    if request.param("watch") in ("1", "true"):
        return float(request.param("timeoutSeconds") or STREAM_SECONDS) + READ_SECONDS
    return READ_SECONDS
