import asyncio
from pathlib import Path

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.kubelet.pods.resize_turns import LONG_SECONDS, SECONDS, EventDelay, Slots
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


async def test_so_many_take_a_turn_at_a_time() -> None:
    """In the order in which they came; one that takes long holds up nobody."""
    clock, begun, going = FakeClock(), list[int](), [asyncio.Event() for _ in range(6)]
    slots = Slots(2, clock)

    async def call(number: int) -> None:
        async with slots.taken():
            begun.append(number)
            await going[number].wait()

    tasks = [asyncio.create_task(call(number)) for number in range(6)]
    await clock.settle()
    assert begun == [0, 1]
    going[1].set()
    await clock.settle()
    assert begun == [0, 1, 2]
    await clock.advance(LONG_SECONDS)
    assert begun == [0, 1, 2, 3, 4]
    for event in going:
        event.set()
    await asyncio.gather(*tasks)
    assert begun == [0, 1, 2, 3, 4, 5]
    assert not clock.pending
