"""An API server in this process behind real TLS, and clients that show certificates of its authority."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podfit.net.authority import Authority
from podfit.net.http_client import HttpsClient
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import client_context, server_context
from podfit.net.wire import Request
from support.server import Server
from support.wire import HOST


class Certified:
    """Sends requests as whom a certificate names; each identity has one certificate and one connection pool."""

    def __init__(self, authority: Authority, port: int) -> None:
        self._authority, self._port = authority, port
        self._clients: dict[str, HttpsClient] = {}

    async def node(self, name: str, method: str, path: str, body: Any = None, *, kind: str = "") -> tuple[int, Any]:
        """A request with the client certificate of a kubelet: `system:node:NAME` in `system:nodes`."""
        return await self.send(f"system:node:{name}", ("system:nodes",), method, path, body, kind=kind)

    async def send(
        self, user: str, groups: tuple[str, ...], method: str, path: str, body: Any = None, *, kind: str = ""
    ) -> tuple[int, Any]:
        """The code and the document of the answer; a watch is closed as soon as it has begun."""
        path, _, query = path.partition("?")
        pairs = (part.partition("=") for part in query.split("&") if part)
        parameters = {name: (value,) for name, _, value in pairs}
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": kind} if kind else {}
        answer = await self._client(user, groups).send(Request(method, path, parameters, headers, data))
        if isinstance(answer.body, bytes):
            return answer.status, json.loads(answer.body) if answer.body.startswith(b"{") else answer.body
        await answer.body.aclose()  # type: ignore[attr-defined]  # a stream that can be closed
        return answer.status, None

    def _client(self, user: str, groups: tuple[str, ...]) -> HttpsClient:
        if user not in self._clients:
            pair = self._authority.client(user.replace(":", "-"), user=user, groups=groups)
            tls = client_context(authorities=self._authority.certificate, certificate=pair.certificate, key=pair.key)
            self._clients[user] = HttpsClient(f"https://{HOST}:{self._port}", tls)
        return self._clients[user]

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


@asynccontextmanager
async def certified(server: Server, directory: Path) -> AsyncIterator[Certified]:
    authority = Authority.load(directory, clock=SystemClock())
    pair = authority.server("server", hosts=(HOST,))
    listening = HttpsServer(server.api.handler, server_context(pair), clients=authority.certificate)
    clients = Certified(authority, await listening.listen(HOST, 0))
    try:
        yield clients
    finally:
        await clients.close()
        await listening.close(deadline=1.0)
