"""Events told as their lines are written: in order, however the lines are cut, and others have their turn."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.informer import Informer
from podfit.client.watch_events import BUSY_SECONDS, MOST_WAITING, EventSink, Unreadable, WatchEvent
from podfit.core.errors import ApiError
from support.clock import FakeClock
from support.faulty_server import FaultyServer

Background = Callable[[Coroutine[Any, Any, None]], object]


def line(name: str, kind: str = "ADDED") -> bytes:
    return b'{"type":"%s","object":{"metadata":{"name":"%s"}}}\n' % (kind.encode(), name.encode())


class Busy(FakeClock):
    """Each event takes more than half of what may be taken at once."""

    def monotonic(self) -> float:
        self._elapsed += 0.6 * BUSY_SECONDS
        return super().monotonic()


def sink_of(clock: FakeClock, *, at_once: bool = False) -> tuple[EventSink[ConfigMap], list[str]]:
    told: list[str] = []

    def tell(event: WatchEvent[ConfigMap]) -> None:
        told.append(event.object.metadata.name)

    return EventSink(ConfigMap, tell, clock, at_once=at_once), told


@pytest.mark.parametrize("size", [1, 7, 50, 51, 1000])
async def test_lines_may_be_cut_anywhere(clock: FakeClock, size: int) -> None:
    sink, told = sink_of(clock)
    data = line("a") + b"\n" + line("b") + line("c")
    for begin in range(0, len(data), size):
        sink.write(data[begin : begin + size])
    sink.write(b"")
    assert told == []
    await sink.drained()
    assert told == ["a", "b", "c"]


async def test_who_is_told_at_once_is_told_while_the_line_is_written(clock: FakeClock) -> None:
    sink, told = sink_of(clock, at_once=True)
    sink.write(line("a"))
    assert told == ["a"]
    sink.write(line("b") + line("c")[:9])
    assert told == ["a", "b"]
    sink.write(line("c")[9:])
    await sink.drained()
    assert told == ["a", "b", "c"]


async def test_what_takes_long_is_not_told_at_once_and_stays_in_order() -> None:
    sink, told = sink_of(Busy(), at_once=True)
    sink.write(b"".join(map(line, "abcd")))
    assert told == ["a", "b"]
    sink.write(line("e"))
    assert told == ["a", "b"], "others come first"
    await sink.drained()
    assert told == [*"abcde"]


async def test_what_takes_long_waits_and_stays_in_order() -> None:
    sink, told = sink_of(Busy())
    sink.write(b"".join(map(line, "abcdef")))
    sink.write(line("g"))
    turns: list[int] = []

    async def other() -> None:
        while len(told) < 7:
            turns.append(len(told))
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    await sink.drained()
    await running
    assert told == [*"abcdefg"]
    assert max(after - before for before, after in pairwise(turns)) == 2


async def test_it_is_not_ready_for_more_than_it_can_tell_soon() -> None:
    sink, told = sink_of(Busy())
    for _ in range(MOST_WAITING):
        sink.write(line("a"))
    ready = [sink.ready]
    sink.write(line("a"))
    ready.append(sink.ready)
    await sink.drained()
    assert [*ready, sink.ready] == [True, False, True]
    assert len(told) == MOST_WAITING + 1


async def test_errors_end_where_they_are(clock: FakeClock) -> None:
    status = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
    for bad, said in ((status, "too old"), (b"{\n", "is not a Event")):
        sink, told = sink_of(clock)
        sink.write(line("a") + bad + line("b"))
        with pytest.raises((ApiError, Unreadable), match=said):
            await sink.drained()
        assert told == ["a"]
        assert not sink.ready
        with pytest.raises((ApiError, Unreadable), match=said):
            sink.write(line("c"))


async def test_nothing_is_told_once_it_is_closed(clock: FakeClock) -> None:
    sink, told = sink_of(clock)
    sink.write(line("a"))
    sink.close()
    await sink.drained()
    await asyncio.sleep(0)
    assert told == []


async def test_in_the_servers_process_all_hear_before_the_writer_is_answered(
    api: FaultyServer, clock: FakeClock, background: Background
) -> None:
    client, heard = api.server.client, list[str]()

    def hear(name: str, obj: ConfigMap) -> None:
        heard.append(f"{name} {obj.metadata.name}")

    for name in "ab":
        informer = Informer(client, ConfigMap, clock=clock)
        informer.add_handler(add=partial(hear, name))
        background(informer.run())
    await clock.settle()
    writing = asyncio.ensure_future(client.create(ConfigMap(metadata=ObjectMeta(name="m", namespace="default"))))
    writing.add_done_callback(lambda _: heard.append("answered"))
    await writing
    await clock.settle()
    assert heard == ["a m", "b m", "answered"]


async def test_in_the_servers_process_one_that_is_busy_holds_nobody_up(
    api: FaultyServer, clock: FakeClock, background: Background
) -> None:
    """It hears the rest later, in its own task, and so does who comes after a history that is compacted."""
    client, turns, seen = api.server.client, 0, list[int]()
    informer = Informer(client, ConfigMap, clock=Busy())
    informer.add_handler(add=lambda _: seen.append(turns))
    background(informer.run())
    await clock.settle()

    async def others() -> None:
        nonlocal turns
        while len(seen) < 40:
            turns += 1
            await asyncio.sleep(0)

    background(others())
    await asyncio.gather(
        *(client.create(ConfigMap(metadata=ObjectMeta(name=f"c{number}", namespace="default"))) for number in range(40))
    )
    await clock.settle()
    assert len(seen) == 40
    assert len(set(seen)) > 19
    assert informer.count == 40


async def test_in_the_servers_process_a_handler_that_fails_harms_no_writer(
    api: FaultyServer, clock: FakeClock, background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: ConfigMap) -> None:
        raise RuntimeError("no")

    client = api.server.client
    informer = Informer(client, ConfigMap, clock=clock)
    informer.add_handler(add=fail)
    background(informer.run())
    await clock.settle()
    for name in "ab":
        await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
    assert informer.count == 2
    assert caplog.text.count("handler failed") == 2
