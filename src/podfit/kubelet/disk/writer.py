"""Writes of the kubelet's own files: in threads, serialized for each file, with a timeout.

    run(path, work) ──▶ a thread ──▶ what `work` returns or raises
                          └─ no answer within LIMIT_SECONDS: Hung; the file counts as hanging until the thread is back,
                             and whoever wants to write it meanwhile gets Hung at once

Work that was given up may still reach the disk, so nobody knows what the file holds then; the next write follows it.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any, ParamSpec, TypeVar

import msgspec

from podfit.core.clock import Clock

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LIMIT_SECONDS = 10.0
"""A disk under full load answers a write within a commit interval of its file system, which is 5 s on ext4; a node that
says nothing for 40 s counts as lost."""


class Hung(OSError):
    """The disk does not answer. The work may still be done later."""


class Threads(Executor):
    """Threads, as many as there is work at a time. They are daemons: a process can end while a disk hangs."""

    def __init__(self) -> None:
        self._idle = Semaphore(0)
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        self._queue.put(partial(_resolve, future, partial(fn, *args, **kwargs)))
        if not self._idle.acquire(blocking=False):
            Thread(target=self._work, name="disk", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            self._queue.get()()
            self._idle.release()


def _resolve(future: Future[T], work: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  (it is the caller's: raised where the future is awaited)
        future.set_exception(error)


class DiskChange(msgspec.Struct, frozen=True):
    """A file began to hang, or does so no longer. `problem` is what hangs since."""

    hangs: bool
    problem: str


class DiskWriter:
    """Without an executor work is done at once, in the event loop: for files that are few and small and not synced."""

    def __init__(self, clock: Clock, executor: Executor | None = None) -> None:
        self.clock = clock
        self.changes: asyncio.Queue[DiskChange] = asyncio.Queue()
        self._executor = executor
        self._going: dict[Path, asyncio.Future[Any]] = {}
        self._hanging: set[Path] = set()

    @property
    def problem(self) -> str:
        """Which files hang, for people; empty when none does."""
        return "; ".join(_text(path) for path in sorted(self._hanging))

    async def run(self, path: Path, work: Callable[[], T]) -> T:
        """Do something with the file in a thread. Raises Hung, and what the work raises."""
        if self._executor is None:
            return work()
        while (before := self._going.get(path)) is not None:
            await self._wait(path, before)
        job = asyncio.get_running_loop().run_in_executor(self._executor, work)
        self._going[path] = job
        job.add_done_callback(partial(self._ended, path))
        await self._wait(path, job)
        return job.result()

    async def _wait(self, path: Path, job: asyncio.Future[Any]) -> None:
        """Until the job is done. Raises Hung after the limit, or at once for a file that hangs."""
        if path in self._hanging:
            raise Hung(_text(path))
        late = asyncio.get_running_loop().create_future()
        timer = self.clock.call_later(LIMIT_SECONDS, partial(_expire, late))
        try:
            await asyncio.wait({job, late}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            late.cancel()
        if not job.done():
            self._give_up(path)
            raise Hung(_text(path))

    def _give_up(self, path: Path) -> None:
        if path not in self._hanging:
            log.error("disk does not answer path=%s seconds=%.0f", path, LIMIT_SECONDS)
            self._hanging.add(path)
            self.changes.put_nowait(DiskChange(True, self.problem))

    def _ended(self, path: Path, job: asyncio.Future[Any]) -> None:
        """Who gave the job up does not ask how it ended."""
        self._going.pop(path, None)
        error = None if job.cancelled() else job.exception()
        if path in self._hanging:
            log.warning("disk answers again path=%s error=%s", path, error)
            self._hanging.discard(path)
            self.changes.put_nowait(DiskChange(False, self.problem))


def _expire(late: asyncio.Future[None]) -> None:
    if not late.done():
        late.set_result(None)


def _text(path: Path) -> str:
    return f"{path}: the disk does not answer within {LIMIT_SECONDS:.0f} s"
