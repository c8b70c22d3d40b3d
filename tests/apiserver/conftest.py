"""A server for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.server import Server, running_server
from support.webhooks import Hooks, serving_hooks


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pki")


@pytest.fixture
async def hooks(pki: Path) -> AsyncIterator[Hooks]:
    async with serving_hooks(pki) as made:
        yield made
