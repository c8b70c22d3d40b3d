from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.scheduling import World, running_scheduler


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running_scheduler(tmp_path) as world:
        yield world
