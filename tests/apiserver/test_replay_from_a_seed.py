"""With a virtual clock and chance from a seed, what a server stores is the same to the byte every time."""

from pathlib import Path

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.codec import convert
from podfit.net.system import SeededRandom
from support.server import running_server

POD = {
    "metadata": {"generateName": "web-", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SERVICE = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"type": "NodePort", "ports": [{"port": 80}], "selector": {"app": "web"}},
}


async def stored(directory: Path, seed: int) -> list[tuple[str, bytes]]:
    async with running_server(directory, random=SeededRandom(seed)) as server:
        for _ in range(3):
            await server.client.create(convert(POD, Pod))
        await server.client.create(convert(SERVICE, Service))
        page = await server.context.store.list("")
    return [(record.key, record.value) for record in page.records]


async def test_a_seed_gives_the_same_cluster_and_another_one_another(tmp_path_factory: pytest.TempPathFactory) -> None:
    first, again, other = [await stored(tmp_path_factory.mktemp("server"), seed) for seed in (7, 7, 8)]
    assert first == again
    assert {key for key, _ in first if "/pods/" in key} != {key for key, _ in other if "/pods/" in key}
