"""The real API server on a store in memory, behind a layer of faults: what a client has to get along with.

    async with faulty_server(directory) as api:
        api.down = True      every request is refused
        api.cut()            every watch that is running ends
        await api.compact()  what was before now cannot be continued from

It is a `Handler` that speaks for an administrator, so it stands behind `Local` or behind a real HTTPS server;
`requests` records what was asked. The server has a clock of its own that stands still, so whatever a test's clock
wakes is the client's. `put`, `remove` and `objects` are of one resource, what the test is about.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.resource import resource_of
from podfit.core.errors import ApiError
from podfit.decide.node.drive import at_once
from podfit.net.guard import answer
from podfit.net.wire import Pieces, Request, Response
from support.server import ADMIN, Server, running_server

Document = dict[str, Any]


class FaultyServer:
    def __init__(self, server: Server, kind: Any = ConfigMap) -> None:
        self.server = server
        self.requests: list[Request] = []
        self.down = False
        self._kind = kind
        self._watches: set[asyncio.Event] = set()

    # ------------------------------------------------------------------ faults

    def cut(self) -> None:
        for ended in self._watches:
            ended.set()

    async def compact(self) -> None:
        store: Any = self.server.context.store
        await store.compact(store.revision)

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        if self.down:
            raise ApiError(503, "ServiceUnavailable", "the server is down")
        response = await answer(self.server.api.handler, request.with_identity(ADMIN))
        if request.param("watch") and not isinstance(response.body, bytes | Pieces):
            return Response(response.status, response.headers, self._cuttable(response.body))
        return response

    async def _cuttable(self, body: Any) -> AsyncIterator[bytes]:
        ended, pieces = asyncio.Event(), aiter(body)
        self._watches.add(ended)
        ending = asyncio.ensure_future(ended.wait())
        try:
            while True:
                piece = asyncio.ensure_future(anext(pieces, None))
                await asyncio.wait((piece, ending), return_when=asyncio.FIRST_COMPLETED)
                if not piece.done() or (said := piece.result()) is None:
                    piece.cancel()
                    await asyncio.gather(piece, return_exceptions=True)
                    return
                yield said
        finally:
            self._watches.discard(ended)
            ending.cancel()
            await body.aclose()

    # ------------------------------------------------------------------ what others do to the objects

    async def put(self, name: str, namespace: str = "default", **more: Any) -> Document:
        """Create or replace an object."""
        labels = more.pop("labels", {})
        body = {"metadata": {"name": name, "namespace": namespace, "labels": labels}, **more}
        there = (namespace, name) in self.objects
        place = self._path(namespace, name if there else "")
        return await self._ask("PUT" if there else "POST", place, msgspec.json.encode(body))

    async def remove(self, name: str, namespace: str = "default") -> None:
        await self._ask("DELETE", self._path(namespace, name))

    async def clear(self) -> None:
        for namespace, name in self.objects:
            await self.remove(name, namespace)

    async def namespace(self, name: str) -> None:
        await self.server.client.create(Namespace(metadata=ObjectMeta(name=name)))

    @property
    def revision(self) -> int:
        return self.server.context.store.revision

    @property
    def objects(self) -> dict[tuple[str, str], Document]:
        """By namespace and name, as the API shows them now."""
        body: Any = at_once(self.server.api.handler(Request("GET", self._path(), {}, identity=ADMIN))).body
        items = msgspec.json.decode(bytes(body))["items"]
        return {(item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in items}

    def _path(self, namespace: str = "", name: str = "") -> str:
        return resource_of(self._kind).info.path(namespace, name)

    async def _ask(self, method: str, path: str, body: bytes = b"") -> Document:
        response = await self.server.ask(method, path, body)
        assert response.status < 300, response.body
        document: Document = msgspec.json.decode(await response.read())
        return document


@asynccontextmanager
async def faulty_server(directory: Path, kind: Any = ConfigMap) -> AsyncIterator[FaultyServer]:
    async with running_server(directory) as server:
        yield FaultyServer(server, kind)
