"""The owner of tasks: what runs beside the caller is cancelled and awaited at its end, and its failure is heard.

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
    def __init__(self, name: str) -> None:
        self.name = name
        self._tasks: dict[asyncio.Task[Any], bool] = {}  # whether it may end by itself
        self._broken: BaseException | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    def run(self, work: Coroutine[Any, Any, object], *, name: str = "") -> asyncio.Task[object]:
        """Run what lasts until `stop`; that it ends, or raises, is a failure. Without a name it has the function's."""
        return self._make(work, name or getattr(work, "__qualname__", ""), may_end=False)

    def begin(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Run what may end; that it raises is a failure. Whoever cancels the task has ended it."""
        return self._make(work, name, may_end=True)

    def watch(self, component: "Supervisor") -> None:
        """A failure of the component is one of ours. Its tasks stay its own."""
        self.run(component.failure(), name=component.name)

    async def failure(self) -> None:
        """Waits; raises what broke first."""
        if self._broken is None:
            told = asyncio.get_running_loop().create_future()
            self._waiting.add(told)
            try:
                await told
            finally:
                self._waiting.discard(told)
        assert self._broken is not None
        raise self._broken

    async def stop(self) -> None:
        """Cancel everything, and return when it has ended. What fails from now on is no failure."""
        while tasks := [task for task in self._tasks if task is not asyncio.current_task()]:
            for task in tasks:
                del self._tasks[task]
                task.remove_done_callback(self._ended)
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _make(self, work: Coroutine[Any, Any, T], name: str, *, may_end: bool) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = may_end
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        may_end = self._tasks.pop(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None and may_end:
            return
        error = error or EndedUnexpectedly(f"{task.get_name()} ended by itself")
        log.error("failed task=%s of=%s error=%s", task.get_name(), self.name, error)
        if self._broken is None:
            self._broken = error
            for told in self._waiting:
                if not told.done():
                    told.set_result(None)
