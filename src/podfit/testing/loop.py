"""Event loops for tests whose time is virtual.

`ThreadsLoop` knows which work threads still do for it, so that a clock waits for them before it moves on.

`TestLoop` is that of a cluster in a test. Advancing time turns it tens of thousands of times, so a turn has to be
cheap: work for an executor that does it at once is done at once, without a wake-up through a socket pair, and while
tasks can run, the sockets, which only foreign clients use, are looked at in every eighth turn.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple, Unpack

from podfit.net.inline_executor import InlineExecutor

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

SELDOM = 8


class _Selector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turns += 1
        if timeout == 0 and self._turns % SELDOM:
            return []
        return super().select(timeout)


class ThreadsLoop(asyncio.SelectorEventLoop):
    """`in_threads` is the work that was given to executors and has not ended."""

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        super().__init__(selector)
        self.in_threads: set[asyncio.Future[Any]] = set()

    def run_in_executor(self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        work = super().run_in_executor(executor, func, *args)
        self.in_threads.add(work)
        work.add_done_callback(self.in_threads.discard)
        return work


class TestLoop(ThreadsLoop):
    __test__ = False

    def __init__(self) -> None:
        super().__init__(_Selector())
        self._inline = InlineExecutor(1)
        self.set_default_executor(self._inline)

    def run_in_executor(self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        chosen = self._inline if executor is None else executor
        if not isinstance(chosen, InlineExecutor):
            return super().run_in_executor(chosen, func, *args)
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  (it is the caller's: raised where the future is awaited)
            done.set_exception(error)
        return done
