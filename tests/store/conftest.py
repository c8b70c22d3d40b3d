"""The stores that the suite runs over: `store` each of them, `logged` the two that write their log themselves."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.store.logged import LoggedStore
from podfit.store.memory import memory_store
from podfit.store.sqlite import sqlite_store
from support.etcd import AnyStore, open_etcd


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture(params=["memory", "sqlite", pytest.param("etcd", marks=pytest.mark.etcd)])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[AnyStore]:
    made: AnyStore
    if request.param == "etcd":
        made = await open_etcd(request.getfixturevalue("etcd_url"))
    else:
        made = memory_store() if request.param == "memory" else sqlite_store(path)
    yield made
    await made.close()


@pytest.fixture(params=["memory", "sqlite"])
async def logged(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[LoggedStore]:
    made = memory_store() if request.param == "memory" else sqlite_store(path)
    yield made
    await made.close()
