"""A garbage collector beside a server, for as long as a test needs one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podfit.client.events import EventRecorder
from podfit.controllers.garbage import GarbageCollector
from podfit.controllers.garbage.collector import COMPONENT
from podfit.core.clock import Clock
from support.server import Server


@asynccontextmanager
async def collecting(server: Server, clock: Clock) -> AsyncIterator[None]:
    client = server.as_user("system:kube-controller-manager")
    recorder = EventRecorder(client, component=COMPONENT, clock=clock)
    parts = recorder.run(), GarbageCollector(client, recorder=recorder, clock=clock).run()
    tasks = [asyncio.create_task(each) for each in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
