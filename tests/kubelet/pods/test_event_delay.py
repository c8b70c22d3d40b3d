import asyncio
from pathlib import Path

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.kubelet.pods.event_delay import SECONDS, EventDelay
from podfit.net.wire import Identity
from support.clock import FakeClock, at_rest
from support.faulty_server import faulty_server


async def test_waits_for_all_resizes_under_way() -> None:
    event_delay = EventDelay(FakeClock())
    await event_delay.wait()
    event_delay.begin("a")
    event_delay.begin("b")
    waiting = asyncio.create_task(event_delay.wait())
    event_delay.end("a")
    await at_rest()
    assert not waiting.done()
    event_delay.end("b")
    await waiting


async def test_waits_for_a_moment_at_most() -> None:
    clock = FakeClock()
    event_delay = EventDelay(clock)
    event_delay.begin("a")
    waiting = asyncio.create_task(event_delay.wait())
    await clock.advance(SECONDS - 0.01)
    assert not waiting.done()
    await clock.advance(0.02)
    assert waiting.done()


async def test_events_that_waited_are_told_together(tmp_path: Path) -> None:
    """While some resize is always under way they must not come one by one and fill the queue."""
    clock = FakeClock()
    event_delay = EventDelay(clock)
    async with faulty_server(tmp_path, Event) as api:
        client = Client(Local(api, Identity("tester")))
        recorder = EventRecorder(client, component="kubelet", clock=clock, after=event_delay.wait)
        running = asyncio.create_task(recorder.run())
        event_delay.begin("a")
        for number in range(100):
            pod = Pod(metadata=ObjectMeta(name=f"p{number}", namespace="default"))
            recorder.event(pod, "Normal", "ResizeStarted", "x")
        await clock.settle()
        assert not api.objects
        await clock.advance(SECONDS)
        assert len(api.objects) == 100
        running.cancel()
