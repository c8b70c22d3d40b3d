from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubelet.harness import Node


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A node whose kubelet runs."""
    made = Node(tmp_path / "node")
    await made.start()
    yield made
    await made.kubelet.stop(stop_pods=False)
