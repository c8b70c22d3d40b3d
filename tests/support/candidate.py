"""A process that wants to lead, between an election and a server."""

import asyncio

from podfit.client.election import Election
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.net.wire import Identity, Request, Response
from support.clock import FakeClock
from support.server import Server

NAME = "kube-scheduler"


class Candidate:
    """A process that may lead. `down` cuts it off from the API server, `hangs` leaves its requests unanswered."""

    def __init__(self, server: Server, clock: FakeClock, identity: str) -> None:
        self.down = self.hangs = False
        self.working = self.began = 0
        self.led, self.renewed = asyncio.Event(), asyncio.Event()
        self._handler = server.api.handler
        client = Client(Local(self._answer, Identity("system:kube-scheduler")))
        self.election = Election(client, clock, name=NAME, identity=identity)
        self.task = asyncio.create_task(self.election.lead(self._work))

    async def _answer(self, request: Request) -> Response:
        if self.hangs:
            await asyncio.Event().wait()
        if self.down:
            raise ApiError(503, "ServiceUnavailable", "away")
        answered = await self._handler(request)
        if request.method == "PUT":
            self.renewed.set()
        return answered

    async def _work(self) -> None:
        self.working, self.began = self.working + 1, self.began + 1
        self.led.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.working -= 1

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
