"""The informers of a process: one for each kind, with the indexes of whoever asked."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.informers import Informers
from podfit.client.resource import resource_of
from support.clock import FakeClock
from support.server import running_server


def by_value(obj: ConfigMap) -> Iterable[str]:
    return obj.data.values()


async def test_a_kind_is_followed_once_for_all_who_ask(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        informers = Informers(server.client, clock)
        maps = informers.of(ConfigMap)
        assert informers.of(ConfigMap) is maps
        assert informers.of(ConfigMap, namespace="default") is not maps
        assert informers.whole(resource_of(ConfigMap).info) is maps
        running = asyncio.create_task(informers.run())
        await server.client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"k": "v"}))
        await clock.settle()
        assert [config_map.metadata.name for config_map in maps.list()] == ["a"]
        late = informers.of(ConfigMap, fields="metadata.name=a")
        await clock.settle()
        assert late.synced.is_set()
        assert late.get("a", "default") is not None
        maps.add_index("value", by_value)
        maps.add_index("value", by_value)
        assert [config_map.metadata.name for config_map in maps.by_index("value", "v")] == ["a"]
        with pytest.raises(ValueError, match="another index"):
            maps.add_index("value", lambda _: ())
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
