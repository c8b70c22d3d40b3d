"""The stores that the suite runs over."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.store.logged import LoggedStore
from podfit.store.memory import memory_store
from podfit.store.sqlite import sqlite_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[LoggedStore]:
    made = memory_store() if request.param == "memory" else sqlite_store(path)
    yield made
    await made.close()
