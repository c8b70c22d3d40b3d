import asyncio

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.kubelet.pods.precedence import SECONDS, Precedence
from podfit.net.wire import Identity
from support.clock import FakeClock
from support.fake_api import FakeApi


async def test_waits_for_everybody_who_goes_first() -> None:
    precedence = Precedence(FakeClock())
    await precedence.clear()
    precedence.begin("a")
    precedence.begin("b")
    waiting = asyncio.create_task(precedence.clear())
    precedence.end("a")
    await asyncio.sleep(0)
    assert not waiting.done()
    precedence.end("b")
    await waiting


async def test_waits_for_a_moment_at_most() -> None:
    clock = FakeClock()
    precedence = Precedence(clock)
    precedence.begin("a")
    waiting = asyncio.create_task(precedence.clear())
    await clock.advance(SECONDS - 0.01)
    assert not waiting.done()
    await clock.advance(0.02)
    assert waiting.done()


async def test_events_that_waited_are_told_together() -> None:
    """In a storm in which somebody always goes first they must not come one by one and fill the queue."""
    clock, api = FakeClock(), FakeApi("events")
    precedence = Precedence(clock)
    client = Client(Local(api, Identity("tester")))
    recorder = EventRecorder(client, component="kubelet", clock=clock, after=precedence.clear)
    running = asyncio.create_task(recorder.run())
    precedence.begin("a")
    for number in range(100):
        recorder.event(Pod(metadata=ObjectMeta(name=f"p{number}", namespace="d")), "Normal", "ResizeStarted", "x")
    await clock.settle()
    assert not api.objects
    await clock.advance(SECONDS)
    assert len(api.objects) == 100
    running.cancel()
