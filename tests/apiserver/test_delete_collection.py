"""deletecollection: several deletions at a time, each by its own rules, and an end when one fails or nobody waits."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.handlers.delete import WORKERS
from podfit.store.logged import LoggedStore
from podfit.store.memory import memory_store
from podfit.store.protocol import Record, StoreUnavailable
from support.server import Server, running_server

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Watched:
    """Counts the deletions that a store has under way, and can fail or hold them."""

    def __init__(self, store: LoggedStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.most = self.begun = 0
        self.fail_at, self.held = -1, asyncio.Event()
        self.held.set()
        self.waiting = asyncio.Event()
        original = store.delete

        async def delete(key: str, **more: Any) -> Record:
            self.begun += 1
            self.now += 1
            self.most = max(self.most, self.now)
            self.waiting.set()
            try:
                await self.held.wait()
                if self.begun >= self.fail_at > 0:
                    raise StoreUnavailable("as arranged")
                return await original(key, **more)
            finally:
                self.now -= 1

        monkeypatch.setattr(store, "delete", delete)


async def fill(server: Server, count: int, **meta: Any) -> None:
    for number in range(count):
        await server.client.create(ConfigMap(metadata=ObjectMeta(name=f"c{number:03}", namespace="default", **meta)))


async def names(server: Server) -> list[str]:
    return [config_map.metadata.name for config_map in (await server.client.list(ConfigMap, "default")).items]


async def test_several_at_a_time_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory_store()
    async with running_server(tmp_path, store=store) as server:
        await fill(server, 60)
        watched = Watched(store, monkeypatch)
        assert (await server.ask("DELETE", CONFIGMAPS)).status == 200
        assert watched.most == WORKERS
        assert await names(server) == []


async def test_those_with_finalizers_stay_marked_and_the_rest_goes(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        await fill(server, 20)
        kept = ConfigMap(metadata=ObjectMeta(name="kept", namespace="default", finalizers=("a.example/b",)))
        await server.client.create(kept)
        assert (await server.ask("DELETE", CONFIGMAPS)).status == 200
        assert await names(server) == ["kept"]
        assert (await server.client.get(ConfigMap, "kept", namespace="default")).metadata.deletion_timestamp


async def test_a_limit_and_a_selector_say_which(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        await fill(server, 12)
        assert (await server.ask("DELETE", f"{CONFIGMAPS}?limit=5")).status == 200
        assert await names(server) == [f"c{number:03}" for number in range(5, 12)]
        assert (await server.ask("DELETE", f"{CONFIGMAPS}?fieldSelector=metadata.name=c007")).status == 200
        assert "c007" not in await names(server)


async def test_the_first_that_fails_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory_store()
    async with running_server(tmp_path, store=store) as server:
        await fill(server, 60)
        watched = Watched(store, monkeypatch)
        watched.fail_at = 20
        assert (await server.ask("DELETE", CONFIGMAPS)).status == 503
        assert watched.begun < 20 + 2 * WORKERS
        assert len(await names(server)) > 60 - 20 - WORKERS
        under_way = [task for task in asyncio.all_tasks() if "carried_out" in repr(task.get_coro())]
        if under_way:
            await asyncio.wait(under_way)
        assert watched.now == 0, "what was begun is done whole"


async def test_a_client_that_goes_away_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory_store()
    async with running_server(tmp_path, store=store) as server:
        await fill(server, 60)
        watched = Watched(store, monkeypatch)
        watched.held.clear()
        asked = asyncio.create_task(server.ask("DELETE", CONFIGMAPS))
        await watched.waiting.wait()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        under_way = asyncio.all_tasks()
        watched.held.set()
        await asyncio.wait([task for task in under_way if "carried_out" in repr(task.get_coro())])
        assert watched.now == 0, "what was begun is done whole"
        assert watched.begun <= WORKERS
        assert len(await names(server)) == 60 - WORKERS
