"""Which pod is tried when."""

import asyncio

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.placement.place import Unschedulable
from podfit.decide.placement.requeue import Change, ClaimChanged, PodGone, PodShrank, Waiting, worth_retrying
from podfit.decide.placement.view import NamespaceLabels, Refusal, Resident
from podfit.scheduler.queue import SWEEP, Key, SchedulingQueue
from support.clock import FakeClock

NO_CPU = Unschedulable("no", {"n1": Refusal("NodeResourcesFit", ("Insufficient cpu",), frozenset({"cpu"}))})


def a_pod(name: str, priority: int = 0) -> tuple[Key, Pod]:
    return ("default", name), Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=PodSpec(priority=priority)
    )


LEFT = a_pod("left")[1]


def short_of_cpu(pod: Pod) -> Waiting:
    return Waiting(Resident.of(pod), NO_CPU)


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
    queue.park(key, short_of_cpu(pod))
    queue.changed(PodShrank(frozenset({"memory"})))
    await clock.advance(5)
    assert await popped(queue) is None
    queue.changed(PodShrank(frozenset({"cpu"})))
    assert await popped(queue) == "a"


async def test_tries_in_quick_succession_are_spaced_while_others_want_their_turn() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    (key, pod), (other, rival) = a_pod("a", 10), a_pod("b")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, short_of_cpu(pod))
    queue.add(other, rival)
    queue.changed(PodGone(LEFT))
    assert await popped(queue) == "b"
    await clock.advance(1)
    assert await popped(queue) == "a"


async def test_a_pause_is_cut_short_when_nobody_else_is_active() -> None:
    queue = SchedulingQueue(FakeClock())
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, short_of_cpu(pod))
    queue.changed(PodGone(LEFT))
    assert await popped(queue) == "a"


async def test_the_pause_after_an_error_lasts_and_grows_up_to_ten_seconds() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    key, pod = a_pod("a")
    queue.add(key, pod)
    for pause in (1, 2, 4, 8, 10, 10):
        assert await popped(queue) == "a"
        queue.retry_later(key)
        await clock.advance(pause - 0.1)
        assert await popped(queue) is None
        await clock.advance(0.2)


async def test_room_that_a_pod_gave_up_itself_does_not_wake_it() -> None:
    queue = SchedulingQueue(FakeClock())
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, short_of_cpu(pod))
    queue.changed(PodGone(pod))
    assert await popped(queue) is None


async def test_a_changed_pod_is_tried_at_once() -> None:
    queue = SchedulingQueue(FakeClock())
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, short_of_cpu(pod))
    queue.add(key, pod)
    assert await popped(queue) == "a"


async def test_what_no_event_told_is_tried_after_a_while() -> None:
    clock = FakeClock()
    queue = SchedulingQueue(clock)
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    queue.park(key, short_of_cpu(pod))
    await clock.advance(SWEEP)
    queue.sweep()
    assert await popped(queue) == "a"


async def test_a_removed_pod_is_never_tried() -> None:
    queue = SchedulingQueue(FakeClock())
    key, pod = a_pod("a")
    queue.add(key, pod)
    queue.remove(key)
    queue.changed(PodGone(LEFT))
    assert await popped(queue) is None


async def test_what_came_during_a_try_wakes_the_pod_that_is_parked_after_it() -> None:
    queue = SchedulingQueue(FakeClock())
    key, pod = a_pod("a")
    queue.add(key, pod)
    await popped(queue)
    seen = queue.news
    queue.changed(PodGone(LEFT))
    queue.park(key, short_of_cpu(pod), news=seen)
    assert await popped(queue) == "a"
    queue.park(key, short_of_cpu(pod), news=queue.news)
    assert await popped(queue) is None


NO_VOLUME = Unschedulable("no", {"n1": Refusal("VolumeBinding", ("no",), frozenset())})


def mounting(name: str, *claims: str) -> tuple[Key, Pod]:
    key, pod = a_pod(name)
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return key, replace(pod, spec=convert({"volumes": volumes}, PodSpec))


async def test_a_claim_is_asked_of_those_alone_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand pods wait, each for a hundred claims of its own; walking them for each of 100,000 claims would hold
    the loop for minutes."""
    queue, asked = SchedulingQueue(FakeClock()), []

    def counted(why: Waiting, change: Change, *, namespaces: NamespaceLabels) -> bool:
        asked.append(why.subject.pod.metadata.name)
        return worth_retrying(why, change, namespaces=namespaces)

    monkeypatch.setattr("podfit.scheduler.queue.worth_retrying", counted)
    for number in range(1000):
        key, pod = mounting(f"p{number}", *(f"c{number}-{claim}" for claim in range(100)))
        queue.add(key, pod)
        await popped(queue)
        queue.park(key, Waiting(Resident.of(pod), NO_VOLUME))
    for claim in range(100):
        queue.changed(ClaimChanged("other", f"c7-{claim}"))
        queue.changed(ClaimChanged("default", f"none-{claim}"))
    assert not asked
    queue.changed(ClaimChanged("default", "c7-99"))
    assert asked == ["p7"]
    assert await popped(queue) == "p7"
    queue.changed(ClaimChanged("default", "c7-98"))
    assert asked == ["p7"], "it waits no more"


async def test_pods_that_share_a_claim_all_wake_and_leave_nothing_behind() -> None:
    queue = SchedulingQueue(FakeClock())
    for name in ("a", "b", "c"):
        key, pod = mounting(name, "shared", f"own-{name}")
        queue.add(key, pod)
        await popped(queue)
        queue.park(key, Waiting(Resident.of(pod), NO_VOLUME))
    queue.remove(("default", "c"))
    queue.changed(ClaimChanged("default", "shared"))
    assert [await popped(queue) for _ in range(3)] == ["a", "b", None]
    assert not queue._mounting
