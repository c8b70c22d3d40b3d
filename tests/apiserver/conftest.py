"""A server for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.server import Server, running_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path) as made:
        yield made
