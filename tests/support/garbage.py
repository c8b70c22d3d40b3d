"""A garbage collector beside a server, for as long as a test needs one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podfit.client.informers import Informers
from podfit.core.clock import Clock
from podfit.net.wire import Identity
from podfit.process.control.controllers import garbage_collection
from podfit.process.identities import MANAGER
from support.background import beside
from support.server import Server


@asynccontextmanager
async def collecting(server: Server, clock: Clock) -> AsyncIterator[None]:
    informers = Informers(server.as_identity(Identity(MANAGER)), clock)
    loops = (*garbage_collection(server.as_identity, informers, clock), informers.run())
    async with beside(*loops):
        yield
