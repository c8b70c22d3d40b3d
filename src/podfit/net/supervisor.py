"""The supervisor of tasks: they are cancelled and awaited at its end, and their failures are raised.

Where work begins and ends inside one function, that is `asyncio.TaskGroup`. A `Supervisor` is for an object that is
started and stopped. A component has one; a process watches those of its components (`watch`), so that a failure
anywhere reaches the one place that ends the process. Who else may make tasks, and why, is in `docs/tasks.md`.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class EndedUnexpectedly(RuntimeError):
    """What should run for as long as its owner ended by itself, without an error."""


class Supervisor:
    """The owner of the tasks of one object; `name` is for messages."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.broken: BaseException | None = None
        """What failed first."""
        self._tasks: dict[asyncio.Task[Any], bool] = {}  # whether it may end by itself
        self._watchers: list[Supervisor] = []
        self._waiting: set[asyncio.Future[None]] = set()

    def run(self, work: Coroutine[Any, Any, object], *, name: str = "") -> asyncio.Task[object]:
        """Run what lasts until `stop`; that it ends, or raises, is a failure. Without a name it has the function's."""
        return self._watched(work, name, may_end=False)

    def begin(self, work: Coroutine[Any, Any, T], *, name: str = "") -> asyncio.Task[T]:
        """Run what may end; that it raises is a failure. Whoever cancels the task has ended it."""
        return self._watched(work, name, may_end=True)

    def hold(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Run what callers wait for: what it returns or raises is theirs to hear."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = True
        task.add_done_callback(self._forget)
        return task

    def watch(self, component: "Supervisor") -> None:
        """A failure of the component is one of ours. Its tasks stay its own."""
        component._watchers.append(self)
        if component.broken is not None:
            self._fail(component.broken)

    async def failure(self) -> None:
        """Waits; raises what broke first."""
        if self.broken is None:
            told = asyncio.get_running_loop().create_future()
            self._waiting.add(told)
            try:
                await told
            finally:
                self._waiting.discard(told)
        assert self.broken is not None
        raise self.broken

    async def stop(self) -> None:
        """Cancel everything, and return when it has ended. What fails from now on is no failure."""
        while tasks := [task for task in self._tasks if task is not asyncio.current_task()]:
            for task in tasks:
                del self._tasks[task]
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Return when all that may end has ended."""
        while tasks := [task for task, may_end in self._tasks.items() if may_end and not task.done()]:
            await asyncio.wait(tasks)

    def _watched(self, work: Coroutine[Any, Any, T], name: str, *, may_end: bool) -> asyncio.Task[T]:
        name = name or getattr(work, "__qualname__", "")
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = may_end
        task.add_done_callback(self._ended)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        """Those who waited for it may all be gone: then nobody asks how it went."""
        self._tasks.pop(task, None)
        if not task.cancelled():
            task.exception()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        may_end = self._tasks.pop(task, None)
        if may_end is None or task.cancelled():
            return
        error = task.exception()
        if error is None and may_end:
            return
        error = error or EndedUnexpectedly(f"{task.get_name()} ended by itself")
        log.error("task failed task=%s owner=%s error=%s", task.get_name(), self.name, error, exc_info=error)
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self.broken is not None:
            return
        self.broken = error
        for told in self._waiting:
            if not told.done():
                told.set_result(None)
        for watcher in self._watchers:
            watcher._fail(error)
