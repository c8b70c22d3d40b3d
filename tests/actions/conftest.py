"""A shop: an API server and a kubelet on a fake runtime."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from actions.shop import Shop
from kubelet.harness import IDENTITY, Node
from podfit.client.rest import Client
from podfit.client.transport import Local
from support.server import running_server


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    node = Node(tmp_path / "node")
    async with running_server(tmp_path, clock=node.clock, certificate=True) as server:
        node.use(Client(Local(server.api.handler, IDENTITY)))
        await node.start()
        yield Shop(node, server)
        await node.kubelet.stop(stop_pods=False)
