"""Watches that write into a socket by themselves: at once while the client keeps up, together when it did not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podfit.apiserver.handlers import watch as watching
from podfit.apiserver.handlers.watch import BOOKMARK_SECONDS
from podfit.net.streams import close
from podfit.net.wire import SelfWriting
from podfit.store import hub
from podfit.store.protocol import Record
from support.clock import FakeClock, at_rest
from support.eventually import PATIENCE
from support.server import Server, document

MAPS = "/api/v1/namespaces/default/configmaps"
KEY = "/registry/configmaps/default/"


class Client:
    """A sink: `written` is what it was given, piece by piece."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.room = asyncio.Event()
        self.room.set()

    @property
    def ready(self) -> bool:
        return self.room.is_set()

    def write(self, data: bytes) -> None:
        if data:
            self.written.append(data)

    async def drained(self) -> None:
        await self.room.wait()

    def seen(self) -> list[list[str]]:
        """The names of the objects in each piece."""
        return [
            [document(line)["object"]["metadata"].get("name", "") for line in piece.splitlines()]
            for piece in self.written
        ]


@asynccontextmanager
async def watched(server: Server, query: str = "") -> AsyncIterator[Client]:
    answer = await server.ask("GET", f"{MAPS}?watch=1&resourceVersion={server.context.store.revision}&{query}")
    client = Client()
    assert isinstance(answer.body, SelfWriting)
    assert not isinstance(answer.body, bytes)
    writing = asyncio.create_task(answer.body.write_to(client))
    await at_rest()
    try:
        yield client
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await close(answer.body)


async def make(server: Server, name: str) -> Record:
    value = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%b","namespace":"default"}}' % name.encode()
    return await server.context.store.create(KEY + name, value)


async def test_an_event_is_with_the_client_before_the_writer_is_answered(server: Server) -> None:
    seen: list[list[list[str]]] = []
    async with watched(server) as client, watched(server) as other:
        writing = asyncio.ensure_future(make(server, "a"))
        writing.add_done_callback(lambda _: seen.append(client.seen()))
        await writing
        assert client.seen() == other.seen() == [["a"]]
        assert client.written[0] is other.written[0]  # encoded once
        await make(server, "b")
        assert client.seen() == [["a"], ["b"]]
    await at_rest()
    assert seen[0] == [["a"]]


async def test_what_waits_for_a_slow_client_comes_together_and_in_order(server: Server) -> None:
    async with watched(server) as client, watched(server) as quick:
        client.room.clear()
        for name in "abc":
            await make(server, name)
        assert quick.seen() == [["a"], ["b"], ["c"]]
        assert client.seen() == [["a"]]  # one piece is always on its way
        client.room.set()
        await at_rest()
        await make(server, "d")
        assert client.seen() == [["a"], ["b", "c"], ["d"]]


async def test_pieces_for_a_slow_client_are_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PIECE", 1)
    async with watched(server) as client:
        client.room.clear()
        for name in "abc":
            await make(server, name)
        client.room.set()
        await at_rest()
        assert client.seen() == [["a"], ["b"], ["c"]]


async def test_a_client_too_far_behind_is_dropped(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BEHIND", 2 * hub.OVERHEAD)
    answer = await server.ask("GET", f"{MAPS}?watch=1&resourceVersion={server.context.store.revision}")
    client = Client()
    assert isinstance(answer.body, SelfWriting)
    writing = asyncio.create_task(answer.body.write_to(client))
    await at_rest()
    client.room.clear()
    for name in "abcdef":
        await make(server, name)
    client.room.set()
    await asyncio.wait_for(writing, 5 * PATIENCE)
    assert client.seen() == [["a"]]


async def test_bookmarks_come_between(server: Server) -> None:
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    async with watched(server, "allowWatchBookmarks=true") as client:
        record = await make(server, "a")
        await clock.advance(BOOKMARK_SECONDS)
        await at_rest()
        await make(server, "b")
        assert client.seen() == [["a"], [""], ["b"]]
        assert document(client.written[1])["object"]["metadata"]["resourceVersion"] == str(record.mod_revision)


async def test_selectors_see_their_own_collection(server: Server) -> None:
    async with watched(server, "fieldSelector=metadata.name%3Db") as client:
        for name in "abc":
            await make(server, name)
        assert client.seen() == [["b"]]


async def test_a_watch_that_cannot_be_shown_fails_alone(server: Server) -> None:
    async with watched(server, "labelSelector=x") as client, watched(server) as other:
        await server.context.store.create(KEY + "broken", b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"la')
        assert client.written == []
        assert len(other.written) == 1
