"""The metrics-server of `podfit up` is registered when that can be done; until then `up` goes on without it."""

import asyncio
from typing import Any

from podfit.api.apiregistration.v1.types import APIService
from podfit.core.errors import ApiError
from podfit.metrics.objects import objects
from podfit.process.control.metrics_server import register_by_and_by, registered
from support.clock import FakeClock


class Full:
    """A client of a server whose disk is full for a while."""

    def __init__(self) -> None:
        self.full = True
        self.made: list[Any] = []

    async def create(self, obj: Any) -> Any:
        if self.full:
            raise ApiError(507, "InsufficientStorage", "the disk is full")
        self.made.append(obj)
        return obj


async def test_a_full_disk_is_waited_for() -> None:
    client: Any = Full()
    clock = FakeClock()
    assert not await registered(client)
    waiting = asyncio.create_task(register_by_and_by(client, clock))
    await clock.advance(20)
    assert (client.made, waiting.done()) == ([], False)
    client.full = False
    await clock.advance(60)
    await waiting
    assert len(client.made) == len(list(objects()))
    assert any(isinstance(obj, APIService) for obj in client.made)
