"""A status on its way to the API, with others before and behind it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.kubelet.status.writer import StatusWriter
from podfit.net.supervisor import Supervisor
from podfit.net.system import SystemRandom
from support.clock import FakeClock
from support.eventually import PATIENCE

PASSING_SECONDS = 0.25


def pod(version: int, phase: str) -> Pod:
    return Pod(metadata=ObjectMeta(name="web", resource_version=str(version)), status=PodStatus(phase=phase))


class Api:
    """Holds back each answer until the test lets it go."""

    random = SystemRandom()

    def __init__(self) -> None:
        self.patches: list[Any] = []
        self.asked: asyncio.Queue[None] = asyncio.Queue()
        self.answers: asyncio.Queue[Pod] = asyncio.Queue()

    async def patch(self, kind: object, name: str, namespace: str, patch: Any, **options: str) -> Pod:
        self.patches.append(patch["status"])
        self.asked.put_nowait(None)
        return await self.answers.get()


@asynccontextmanager
async def writing(api: Api, clock: FakeClock) -> AsyncIterator[StatusWriter]:
    supervisor = Supervisor("pod web")
    writer = StatusWriter(cast(Client, api), pod(1, "Pending"), clock=clock, supervisor=supervisor)
    try:
        yield writer
    finally:
        writer.close()
        await supervisor.stop()
    assert not clock.pending
    assert supervisor.broken is None


async def test_an_answer_older_than_what_the_watch_brought_is_not_taken_for_what_is_there() -> None:
    api = Api()
    async with writing(api, FakeClock()) as writer:
        writer.set(replace(writer.status, phase="Running"))
        await asyncio.wait_for(api.asked.get(), 60)
        writer.seen(pod(3, "Unknown"))  # somebody wrote after us
        api.answers.put_nowait(pod(2, "Running"))
        await asyncio.wait_for(api.asked.get(), 60)
        assert api.patches[1] == {"phase": "Running"}, "what was overwritten is written again"
        api.answers.put_nowait(pod(4, "Running"))
        async with asyncio.timeout(60 * PATIENCE):
            await writer.written()
        assert len(api.patches) == 2


async def test_nothing_is_written_once_the_writer_is_closed() -> None:
    api, clock = Api(), FakeClock()
    async with writing(api, clock) as writer:
        writer.set(replace(writer.status, phase="Running"))
        await clock.settle()
        writer.close()
        writer.set(replace(writer.status, phase="Failed"))
        writer.set(replace(writer.status, message="ending"), passing=PASSING_SECONDS)
        writer.seen(pod(2, "Pending"))
        await clock.settle()
        assert api.patches == [{"phase": "Running"}]


async def test_a_passing_status_that_does_not_last_is_never_written() -> None:
    api, clock = Api(), FakeClock()
    async with writing(api, clock) as writer:
        writer.set(replace(writer.status, message="making the sandbox"), passing=PASSING_SECONDS)
        writer.seen(pod(2, "Pending"))
        await clock.advance(PASSING_SECONDS / 2)
        assert (api.patches, writer.is_written) == ([], False)
        writer.set(replace(writer.status, message="making the container"), passing=PASSING_SECONDS)
        waiting = asyncio.create_task(writer.written())
        await clock.settle()
        assert not waiting.done()
        writer.set(replace(writer.status, phase="Running", message=""))
        await clock.settle()
        assert api.patches == [{"phase": "Running"}]
        api.answers.put_nowait(pod(3, "Running"))
        await waiting
        assert writer.is_written


async def test_a_passing_status_that_lasts_is_written_as_the_newest_is_then() -> None:
    api, clock = Api(), FakeClock()
    async with writing(api, clock) as writer:
        writer.set(replace(writer.status, message="one"), passing=PASSING_SECONDS)
        writer.set(replace(writer.status, message="two"), passing=PASSING_SECONDS)
        await clock.advance(PASSING_SECONDS)
        assert api.patches == [{"message": "two"}]
        writer.set(replace(writer.status, message="three"), passing=PASSING_SECONDS)
        two = pod(2, "Pending")
        api.answers.put_nowait(replace(two, status=replace(two.status, message="two")))
        await clock.settle()
        assert not writer.is_written
        await clock.advance(PASSING_SECONDS)
        assert api.patches[1:] == [{"message": "three"}]


async def test_a_passing_status_that_the_api_has_needs_no_write() -> None:
    api, clock = Api(), FakeClock()
    async with writing(api, clock) as writer:
        writer.set(writer.status, passing=PASSING_SECONDS)
        await clock.advance(PASSING_SECONDS)
        await writer.written()
        assert (api.patches, writer.is_written) == ([], True)
