"""Which pod is tried when."""

import asyncio

from podfit.api.core.pods import Pod, PodSpec
from podfit.api.meta import ObjectMeta
from podfit.decide.place import Refusal, Unschedulable
from podfit.decide.requeue import NodeChanged, PodGone, PodShrank
from podfit.scheduler.queue import SWEEP, Key, SchedulingQueue
from support.clock import FakeClock

SHORT_OF_CPU = Unschedulable("no", {"n1": Refusal("resources", ("Insufficient cpu",), frozenset({"cpu"}))})


def a_pod(name: str, priority: int = 0) -> tuple[Key, Pod]:
    return ("default", name), Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=PodSpec(priority=priority))


async def popped(queue: SchedulingQueue) -> str | None:
    """The name of the next pod, or None when none is to be tried now."""
    try:
        async with asyncio.timeout(0.01):
            return (await queue.pop())[0][1]
    except TimeoutError:
        return None


async def test_priority_first_then_arrival() -> None:
    queue = SchedulingQueue(FakeClock())
    for key, pod in (a_pod("a"), a_pod("b"), a_pod("urgent", 10)):
        queue.add(key, pod)
    assert [await popped(queue) for _ in range(4)] == ["urgent", "a", "b", None]


async def test_a_parked_pod_wakes_only_for_what_may_help() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, SHORT_OF_CPU)
    queue.changed(PodShrank(frozenset({"memory"})))
    await clock.advance(5)
    assert await popped(queue) is None
    queue.changed(PodShrank(frozenset({"cpu"})))
    assert await popped(queue) == "a"


async def test_tries_in_quick_succession_are_spaced() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, SHORT_OF_CPU)
    queue.changed(PodGone())
    assert await popped(queue) is None
    await clock.advance(1)
    assert await popped(queue) == "a"


async def test_a_changed_pod_is_tried_at_once() -> None:
    queue = SchedulingQueue(FakeClock())
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, SHORT_OF_CPU)
    queue.add(key, pod)
    assert await popped(queue) == "a"


async def test_what_no_event_told_is_tried_after_a_while() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, SHORT_OF_CPU)
    await clock.advance(SWEEP)
    queue.sweep()
    assert await popped(queue) == "a"


async def test_a_removed_pod_is_never_tried() -> None:
    queue = SchedulingQueue(FakeClock())
    key, pod = a_pod("a")
    queue.add(key, pod)
    queue.remove(key)
    queue.changed(NodeChanged())
    assert await popped(queue) is None
