"""Runs requests with bounded concurrency."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def each_by_workers(number: int, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Work on all items, in order, on at most `number` at a time; the first exception ends it."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(number):
            group.create_task(worker())
