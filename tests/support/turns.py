"""How much CPU an event loop's thread spends between two of its turns.

A timer comes back every 2 ms. Whatever the thread works in between keeps every other client waiting, so the CPU time
between two of its calls is the length of a turn, too long by 2 ms at most. CPU time of one thread says the same on a
busy machine as on an idle one; time on the wall does not. Where a processor is shared, the same work takes more of its
time, too: what looks long counts in proportion to a fixed piece of work done right behind it, and the least of some
tries counts (`worst_ms`, `cpu_ms`).
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

TICK_SECONDS = 0.002
TURN_MS = 100.0
LONG_SECONDS = 0.04
"""From here on a turn is put in proportion to the machine's pace. No bound is lower."""
PROPORTION = 1.25
"""How much more than in proportion to its size a work may take to count as growing with it."""
REFERENCE_MS = 5.0
"""What `reference_work` takes on the machine for which the bounds are set, with nobody else on it."""


class Turns:
    """Measures the loop whose thread calls `start`, until `stop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.worst = 0.0
        """Seconds of CPU of the longest turn since `reset`."""
        self._loop = loop
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._last = time.thread_time()
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """Counts the turn under way."""
        if self._timer is not None:
            self._timer.cancel()
            self.note()

    def reset(self) -> None:
        self.worst, self._last = 0.0, time.thread_time()

    def note(self) -> None:
        took = time.thread_time() - self._last
        if took > max(self.worst, LONG_SECONDS):
            took /= slowness()
        self.worst, self._last = max(self.worst, took), time.thread_time()

    def _tick(self) -> None:
        self.note()
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)


@contextmanager
def turns() -> Iterator[Turns]:
    """Of the running loop, in this process: `with turns() as measured: await …`, then `measured.worst`."""
    measured = Turns(asyncio.get_running_loop())
    with without_collector():
        measured.start()
        try:
            yield measured
        finally:
            measured.stop()


async def worst_ms(work: Callable[[], Awaitable[object]], *, most: float = TURN_MS, tries: int = 3) -> float:
    """The longest turn while that is done, in milliseconds of CPU: the least of some tries; the first that is under
    `most` is the last."""
    least = float("inf")
    for _ in range(tries):
        with turns() as measured:
            await work()
        least = min(least, 1000 * measured.worst)
        if least < most:
            break
    return least


def cpu_ms(work: Callable[[], Any], *, most: float = TURN_MS, tries: int = 5) -> float:
    """The CPU that a call takes, in milliseconds: the least of some tries, where the first is not under `most`."""
    least = float("inf")
    with without_collector():
        for _ in range(tries):
            took = _thread_ms(work)
            if took >= most:
                took /= slowness()
            least = min(least, took)
            if least < most:
                break
    return least


def growth(work: Callable[[int], Callable[[], Any]], size: int, *, times: int = 8, tries: int = 12) -> float:
    """By how much the CPU of a work grows when its size does `times`: both are the least of some tries in turns, which
    end when the growth is that of the size. `work` makes a call of a size; what it takes to make it is not measured.
    What grows with the square of its size grows `times` times as much again, however often it is tried."""
    small = large = float("inf")
    with without_collector():
        for _ in range(tries):
            small, large = min(small, _thread_ms(work(size))), min(large, _thread_ms(work(times * size)))
            if large < PROPORTION * times * small:
                break
    return large / small


def slowness() -> float:
    """How many times as long as on the machine for which the bounds are set a piece of work takes now; 1 at least. The
    collector, which would look through all that the process has, does not run meanwhile."""
    with without_collector():
        return max(1.0, _thread_ms(reference_work) / REFERENCE_MS)


@contextmanager
def without_collector() -> Iterator[None]:
    """What the other tests of a session have left is not looked through meanwhile; a server's memory is frozen, too."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _thread_ms(work: Callable[[], Any]) -> float:
    before = time.thread_time()
    work()
    return 1000 * (time.thread_time() - before)


def reference_work() -> None:
    sorted({str(number): [number] for number in range(20_000)})


def burn(pieces: int) -> None:
    """So many times `REFERENCE_MS` of CPU, of a slower machine as much as that work takes there."""
    for _ in range(pieces):
        until = time.thread_time() + REFERENCE_MS / 1000
        reference_work()
        while time.thread_time() < until:
            pass
