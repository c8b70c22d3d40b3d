import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.net.wire import Identity
from support.clock import FakeClock
from support.faulty_server import FaultyServer, faulty_server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[FaultyServer]:
    async with faulty_server(tmp_path) as made:
        yield made


@pytest.fixture
def client(api: FaultyServer) -> Client:
    return Client(Local(api, Identity("tester")), user_agent="tests")


@pytest.fixture
async def background() -> AsyncIterator[Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]]:
    """Run a coroutine until the test ends; it must not have failed by then."""
    tasks: list[asyncio.Task[None]] = []

    def start(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        tasks.append(asyncio.create_task(work))
        return tasks[-1]

    yield start
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome
