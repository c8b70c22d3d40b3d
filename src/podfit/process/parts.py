"""What runs for as long as the cluster does: controllers and the scheduler. One that ends by itself is a failure."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Parts:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def run(self, part: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(part)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def failure(self) -> None:
        """Waits; raises what broke one of them."""
        await asyncio.shield(self._broken)

    async def end(self) -> None:
        for task in self._tasks:
            task.remove_done_callback(self._ended)
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and not self._broken.done():
            self._broken.set_exception(task.exception() or RuntimeError("a part of the cluster ended by itself"))
