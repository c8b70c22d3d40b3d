"""The answer to a write may come after the watch has told of what followed it."""

import asyncio
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.kubelet.status.writer import StatusWriter
from podfit.net.system import SystemRandom
from support.clock import FakeClock


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


async def test_an_answer_older_than_what_the_watch_brought_is_not_taken_for_what_is_there() -> None:
    api = Api()
    writer = StatusWriter(api, pod(1, "Pending"), clock=FakeClock())  # type: ignore[arg-type]  # a fake
    running = asyncio.create_task(writer.run())
    writer.set(replace(writer.status, phase="Running"))
    await asyncio.wait_for(api.asked.get(), 60)
    writer.seen(pod(3, "Unknown"))  # somebody wrote after us
    api.answers.put_nowait(pod(2, "Running"))
    await asyncio.wait_for(api.asked.get(), 60)
    assert api.patches[1] == {"phase": "Running"}, "what was overwritten is written again"
    api.answers.put_nowait(pod(4, "Running"))
    async with asyncio.timeout(60):
        await writer.written()
    assert len(api.patches) == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
