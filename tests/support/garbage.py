"""A garbage collector beside a server, for as long as a test needs one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podfit.core.clock import Clock
from podfit.process.controllers import garbage_collection
from support.server import Server


@asynccontextmanager
async def collecting(server: Server, clock: Clock) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in garbage_collection(server.as_identity, clock)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
