"""Event loops for tests whose time is virtual: they say when they are at rest.

An event loop asks its selector to wait only when no task can run, and tells it for how long. That is how these know: no
turns are counted, and components need not say that they are idle, for each of them works in tasks, callbacks and
executors of the loop. What a task gave to a thread, `in_threads`, is not at rest; bytes that have arrived on a socket
are not either; a timer of real time is.

`TestLoop` is that of a cluster in a test. All its work is done in its own thread, so that everything happens in the
same order every time; and a turn is cheap, because advancing time takes tens of thousands of them: while tasks can
run, the sockets, which only foreign clients use, are looked at in every eighth turn.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple, Unpack

from podfit.net.inline_executor import InlineExecutor

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Events = list[tuple[selectors.SelectorKey, int]]

SELDOM = 8


class _Selector(selectors.DefaultSelector):
    """Looks at the sockets, if there are any, in every `seldom`-th turn while there is other work; `resting` hear when
    there is none. The loop's own pipe, which wakes it up and tells of signals, is read at rest."""

    def __init__(self, seldom: int) -> None:
        super().__init__()
        self.resting: list[asyncio.Future[None]] = []
        self._seldom, self._turns = seldom, 0

    def select(self, timeout: float | None = None) -> Events:
        if timeout == 0:
            if len(self.get_map()) == 1:
                return []
            self._turns += 1
            return [] if self._turns % self._seldom else super().select(0)
        if not self.resting:
            return super().select(timeout)
        if arrived := super().select(0):
            return arrived
        resting, self.resting = self.resting, []
        for heard in resting:
            if not heard.done():
                heard.set_result(None)
        return []


class ThreadsLoop(asyncio.SelectorEventLoop):
    """`in_threads` is the work that was given to executors and has not ended."""

    def __init__(self, *, seldom: int = 1) -> None:
        self._resting = _Selector(seldom)
        super().__init__(self._resting)
        self.in_threads: set[asyncio.Future[Any]] = set()

    async def rest(self) -> None:
        """Return when nothing can run but what waits for rest itself. Work in threads is not waited for."""
        heard: asyncio.Future[None] = self.create_future()
        self._resting.resting.append(heard)
        await heard

    def run_in_executor(self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        work = super().run_in_executor(executor, func, *args)
        self.in_threads.add(work)
        work.add_done_callback(self.in_threads.discard)
        return work


class TestLoop(ThreadsLoop):
    """Work for executors is done at once."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__(seldom=SELDOM)
        self.set_default_executor(InlineExecutor(1))

    def run_in_executor(self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  (it is the caller's: raised where the future is awaited)
            done.set_exception(error)
        return done
