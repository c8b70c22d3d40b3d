import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.client.workqueue import BUSY_SECONDS, WorkQueue
from support.clock import FakeClock

Background = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


async def test_a_key_waits_once_and_keys_come_in_order(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    for key in "abab":
        queue.add(key)
    assert len(queue) == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]


async def test_keys_take_turns_by_their_share(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock, share=lambda key: key[0])
    for key in ("a1", "a2", "a3", "b1", "a4", "c1", "b2"):
        queue.add(key)
    assert len(queue) == 7
    assert [await queue.get() for _ in range(7)] == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
    queue.add("b3")
    assert await queue.get() == "b3"
    assert len(queue) == 0


async def test_a_key_added_during_its_work_is_worked_on_again_afterwards(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_the_soonest_of_several_delays_counts(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 7)
    queue.add_after("b", 0)
    assert len(queue) == 1
    await clock.advance(4.9)
    assert len(queue) == 1
    await clock.advance(0.1)
    assert len(queue) == 2
    assert clock.pending == []


async def test_delays_double_up_to_the_longest_and_begin_anew_after_success(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock, first=1, longest=5)
    delays = []
    for _ in range(5):
        delays.append(queue.retry("a"))
        await clock.advance(delays[-1])
    assert delays == [1, 2, 4, 5, 5]
    queue.forget("a")
    assert queue.retry("a") == 1
    assert queue.retry("b") == 1


async def test_work_that_fails_is_retried_and_work_may_ask_to_come_back(
    clock: FakeClock, background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    queue: WorkQueue[str] = WorkQueue(clock, first=1)
    worked: list[float] = []

    async def work(key: str) -> float | None:
        worked.append(clock.monotonic())
        if len(worked) < 3:
            raise ValueError(key)
        return 10 if len(worked) == 3 else None

    background(queue.run(work))
    queue.add("a")
    await clock.advance(100)
    assert worked == [0, 1, 3, 13]
    assert caplog.text.count("work failed key=a") == 2


async def test_a_cancelled_worker_leaves_its_wake_up_to_another(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await clock.settle()
    queue.add("a")
    first.cancel()
    await clock.settle()
    assert second.result() == "a"


@given(adds=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=40), workers=st.integers(1, 4))
async def test_no_key_is_in_two_hands_and_no_add_is_lost(adds: list[tuple[str, int]], workers: int) -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    wanted = dict.fromkeys("abc", 0)
    seen = dict.fromkeys("abc", 0)
    in_hand: set[str] = set()

    async def work(key: str) -> None:
        assert key not in in_hand
        in_hand.add(key)
        version = wanted[key]
        await clock.sleep(2)
        seen[key] = version
        in_hand.discard(key)

    task = asyncio.create_task(queue.run(work, workers=workers))
    for key, pause in adds:
        wanted[key] += 1
        queue.add(key)
        await clock.advance(pause)
    await clock.advance(1000)
    assert seen == wanted
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_work_that_asks_at_once_again_and_again_does_not_spin(clock: FakeClock, background: Background) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    turns = 0

    async def work(_key: str) -> float | None:
        nonlocal turns
        turns += 1
        return 0.0

    queue.add("a")
    background(queue.run(work))
    await clock.advance(10)
    assert turns < 20


async def test_work_that_asks_for_less_than_a_moment_once_is_soon_looked_at(
    clock: FakeClock, background: Background
) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    times: list[float] = []
    asks = iter((0.0, 0.2, 0.0, None))

    async def work(_key: str) -> float | None:
        times.append(clock.monotonic())
        return next(asks)

    began = clock.monotonic()
    queue.add("a")
    background(queue.run(work))
    await clock.advance(1)
    assert [round(moment - began, 3) for moment in times] == [0.0, 0.005, 0.205, 0.21]


class Ticking(FakeClock):
    """Each look at it takes a little."""

    def monotonic(self) -> float:
        self._elapsed += BUSY_SECONDS
        return super().monotonic()


async def test_work_that_waits_for_nothing_keeps_nobody_waiting(background: Background) -> None:
    clock = Ticking()
    queue: WorkQueue[int] = WorkQueue(clock)
    turns, seen = 0, list[int]()

    async def work(key: int) -> None:
        seen.append(turns)

    async def others() -> None:
        nonlocal turns
        while len(seen) < 100:
            turns += 1
            await asyncio.sleep(0)

    for key in range(100):
        queue.add(key)
    background(queue.run(work))
    background(others())
    await clock.settle()
    assert len(set(seen)) > 30


async def test_a_key_that_rests_waits_with_what_is_added_meanwhile(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.rest("a", 5)
    queue.done("a")
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"
    await clock.advance(4.9)
    assert len(queue) == 0
    await clock.advance(0.1)
    assert await queue.get() == "a"
    queue.done("a")
    queue.add("a")
    assert len(queue) == 1
    assert clock.pending == []
