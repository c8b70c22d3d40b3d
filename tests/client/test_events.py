import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.event_series import SeriesRecorder
from podfit.client.events import AT_ONCE, QUEUE_SIZE, EventRecorder
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.net.wire import Identity, Request, Response
from support.clock import FakeClock
from support.faulty_server import FaultyServer, faulty_server

Background = Callable[[Coroutine[Any, Any, None]], object]
NANOSECONDS = 1_767_225_600 * 10**9  # where FakeClock begins


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[FaultyServer]:
    async with faulty_server(tmp_path, Event) as made:
        await made.namespace("shop")
        yield made


@pytest.fixture
def recorder(client: Client, clock: FakeClock) -> EventRecorder:
    return EventRecorder(client, component="kubelet", host="node-1", clock=clock)


def pod(version: str = "7", uid: str = "u1") -> Pod:
    return Pod(metadata=ObjectMeta(name="web", namespace="shop", uid=uid, resource_version=version))


async def test_an_event_has_upstreams_shape(
    api: FaultyServer, recorder: EventRecorder, clock: FakeClock, background: Background
) -> None:
    background(recorder.run())
    recorder.event(pod(), "Warning", "ResizeDeferred", "Node didn't have enough cpu", field_path="spec.containers{c}")
    await recorder.flush()
    assert len(api.objects) == 1
    obj = json.loads(api.requests[-1].body)
    metadata = obj.pop("metadata")
    assert (metadata["namespace"], metadata["name"]) == ("shop", f"web.{NANOSECONDS:x}")
    assert obj == {
        "kind": "Event",
        "apiVersion": "v1",
        "type": "Warning",
        "reason": "ResizeDeferred",
        "count": 1,
        "message": "Node didn't have enough cpu",
        "eventTime": None,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": {
            "kind": "Pod",
            "apiVersion": "v1",
            "name": "web",
            "namespace": "shop",
            "uid": "u1",
            "resourceVersion": "7",
            "fieldPath": "spec.containers{c}",
        },
        "reportingComponent": "kubelet",
        "reportingInstance": "node-1",
        "source": {"component": "kubelet", "host": "node-1"},
    }


async def test_repeats_raise_the_count_of_one_event(
    api: FaultyServer, recorder: EventRecorder, clock: FakeClock, background: Background
) -> None:
    background(recorder.run())
    for version in ("7", "8", "9"):
        recorder.event(pod(version), "Normal", "Pulled", "image is there")
        await clock.advance(60)
    recorder.event(pod(), "Normal", "Pulled", "another image is there")
    await recorder.flush()
    fields = ("count", "firstTimestamp", "lastTimestamp")
    counts = {obj["message"]: tuple(obj[field] for field in fields) for obj in api.objects.values()}
    assert counts == {
        "image is there": (3, "2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z"),
        "another image is there": (1, "2026-01-01T00:03:00Z", "2026-01-01T00:03:00Z"),
    }


async def test_an_expired_event_is_told_anew(
    api: FaultyServer, recorder: EventRecorder, background: Background
) -> None:
    background(recorder.run())
    recorder.event(pod(), "Normal", "Pulled", "image is there")
    await recorder.flush()
    await api.clear()
    recorder.event(pod(), "Normal", "Pulled", "image is there")
    await recorder.flush()
    assert [obj["count"] for obj in api.objects.values()] == [1]


async def test_two_components_tell_in_the_same_moment(
    api: FaultyServer, client: Client, recorder: EventRecorder, clock: FakeClock, background: Background
) -> None:
    other = EventRecorder(client, component="scheduler", clock=clock)
    for events, text in ((recorder, "one"), (other, "other")):
        background(events.run())
        events.event(pod(), "Normal", "Pulled", text)
        await events.flush()
    assert sorted(obj["message"] for obj in api.objects.values()) == ["one", "other"]


async def test_events_about_nodes_live_in_default(
    api: FaultyServer, recorder: EventRecorder, background: Background
) -> None:
    background(recorder.run())
    recorder.event(Node(metadata=ObjectMeta(name="n1")), "Normal", "NodeReady", "ready")
    await recorder.flush()
    assert [namespace for namespace, _ in api.objects] == ["default"]


async def test_a_full_queue_drops_and_says_so_once(
    recorder: EventRecorder, background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(QUEUE_SIZE + 20):
        recorder.event(pod(), "Normal", "Pulled", str(number))
    assert caplog.messages == ["event dropped object=shop/web reason=Pulled message='1000' error=the queue is full"]
    background(recorder.run())
    await recorder.flush()
    assert caplog.messages[1:] == ["events dropped component=kubelet count=19 error=the queue was full"]
    assert recorder.dropped == 20


async def test_a_refused_event_is_dropped_and_the_next_goes_on(
    api: FaultyServer, recorder: EventRecorder, background: Background
) -> None:
    background(recorder.run())
    api.down = True
    recorder.event(pod(), "Normal", "Pulled", "lost")
    await recorder.flush()
    api.down = False
    recorder.event(pod(), "Normal", "Pulled", "told")
    await recorder.flush()
    assert [obj["message"] for obj in api.objects.values()] == ["told"]
    assert recorder.dropped == 1


async def test_similar_events_become_one_and_too_many_are_left_out(
    api: FaultyServer, recorder: EventRecorder, clock: FakeClock, background: Background
) -> None:
    background(recorder.run())
    for number in range(100):
        recorder.event(pod(), "Warning", "Failed", f"error {number}")
    await recorder.flush()
    last = max(api.objects.values(), key=lambda obj: obj["count"])
    assert (len(api.objects), last["count"], last["message"]) == (10, 16, "(combined from similar events): error 24")
    await clock.advance(300)
    recorder.event(pod(), "Warning", "Failed", "error 100")
    await recorder.flush()
    last = max(api.objects.values(), key=lambda obj: obj["count"])
    assert (last["count"], last["message"]) == (92, "(combined from similar events): error 100")
    assert recorder.dropped == 0


async def test_events_about_different_objects_travel_together(
    api: FaultyServer, clock: FakeClock, background: Background
) -> None:
    """One after the other each would have a commit of its own, and the queue of a busy scheduler would run over. What
    is told of one object stays in order."""
    arrived: list[str] = []
    let_through = asyncio.Semaphore(0)

    async def slow(request: Request) -> Response:
        arrived.append(request.path)
        await let_through.acquire()
        return await api(request)

    recorder = EventRecorder(Client(Local(slow, Identity("tester")), user_agent="t"), component="c", clock=clock)
    for number in range(AT_ONCE + 1):
        recorder.event(pod(uid=f"u{number}"), "Normal", "Scheduled", "to n1")
        recorder.event(pod(uid=f"u{number}"), "Normal", "Pulled", "image is there")
    background(recorder.run())
    for count in (AT_ONCE, AT_ONCE, 1, 1):
        await clock.settle()
        assert len(arrived) == count
        arrived.clear()
        for _ in range(count):
            let_through.release()
    await recorder.flush()
    told = [(obj["involvedObject"]["uid"], obj["reason"]) for obj in api.objects.values()]
    assert sorted(told, key=lambda one: one[0]) == [
        (f"u{number}", reason) for number in range(AT_ONCE + 1) for reason in ("Scheduled", "Pulled")
    ]
    assert recorder.dropped == 0


async def test_a_series_is_written_when_it_begins_and_when_it_is_over(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    recorder = SeriesRecorder(client, component="default-scheduler", host="vm", clock=clock)
    background(recorder.run())
    shown = []
    for number in range(4):
        recorder.event(pod(), "Warning", "FailedScheduling", f"message {number}", action="Scheduling")
        await recorder.flush()
        (obj,) = api.objects.values()
        shown.append((obj["message"], (obj.get("series") or {}).get("count")))
        await clock.advance(60)
    assert shown == [("message 0", None), ("message 0", 2), ("message 0", 2), ("message 0", 2)]
    (obj,) = api.objects.values()
    assert (obj["eventTime"], obj["firstTimestamp"], obj.get("count")) == ("2026-01-01T00:00:00.000000Z", None, None)
    assert (obj["reportingComponent"], obj["reportingInstance"]) == ("default-scheduler", "default-scheduler-vm")
    assert obj["source"] == {}
    await clock.advance(400)
    recorder.event(pod(), "Warning", "FailedScheduling", "message 4", action="Scheduling")
    await recorder.flush()
    first, second = api.objects.values()
    assert (first["series"]["count"], first["series"]["lastObservedTime"]) == (4, "2026-01-01T00:03:00.000000Z")
    assert (second["message"], second.get("series")) == ("message 4", None)


async def test_a_series_that_goes_on_is_written_before_its_event_expires_and_made_anew_after_that(
    api: FaultyServer, client: Client, clock: FakeClock, background: Background
) -> None:
    recorder = SeriesRecorder(client, component="default-scheduler", host="vm", clock=clock)
    background(recorder.run())

    async def told(number: int) -> None:
        recorder.event(pod(), "Warning", "FailedScheduling", f"message {number}", action="Scheduling")
        await recorder.flush()
        await clock.advance(300)

    for number in range(8):
        await told(number)
    (obj,) = api.objects.values()
    assert obj["series"]["count"] == 8
    await api.clear()
    for number in range(8, 14):
        await told(number)
    (obj,) = api.objects.values()
    assert obj["message"] == "message 0"
