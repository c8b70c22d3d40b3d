"""Writes of the kubelet's own files: in threads, serialized for each file, with a timeout.

    run(path, work) ──▶ a thread ──▶ what `work` returns or raises
                          └─ no answer within LIMIT_SECONDS: Hung; the file counts as hanging until the thread is back,
                             and whoever wants to write it meanwhile gets Hung at once

Work that was given up may still reach the disk, so nobody knows what the file holds then; the next write follows it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any, ParamSpec, TypeAlias, TypeVar

import msgspec

from podfit.core.clock import Clock, Timer

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LIMIT_SECONDS = 10.0
"""A disk under full load answers a write within a commit interval of its file system, which is 5 s on ext4; a node that
says nothing for 40 s counts as lost."""


Ended: TypeAlias = Callable[["asyncio.Future[Any]"], None]
"""Takes a future that is done: with what the work has returned or raised, or with Hung."""


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


class _Job:
    """Work on a file, at the disk or behind other work on the same file."""

    def __init__(self, work: Callable[[], Any], ended: Ended) -> None:
        self.work, self.ended = work, ended
        self.at_disk: asyncio.Future[Any] | None = None
        self.timer: Timer | None = None
        self.given_up = False


class DiskWriter:
    """Without an executor work is done at once, in the event loop: for files that are few and small and not synced."""

    def __init__(self, clock: Clock, executor: Executor | None = None) -> None:
        self.clock = clock
        self.changes: asyncio.Queue[DiskChange] = asyncio.Queue()
        self._executor = executor
        self._jobs: dict[Path, deque[_Job]] = {}  # of each file in order; the first is at the disk
        self._hanging: set[Path] = set()

    @property
    def problem(self) -> str:
        """Which files hang, for people; empty when none does."""
        return "; ".join(_text(path) for path in sorted(self._hanging))

    async def run(self, path: Path, work: Callable[[], T]) -> T:
        """Do something with the file in a thread. Raises Hung, and what the work raises."""
        if self._executor is None:
            return work()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = self._add(path, _Job(work, partial(_tell, done)))
        try:
            return await done
        except asyncio.CancelledError:
            self._withdraw(path, job)
            raise

    def begin(self, path: Path, work: Callable[[], Any], ended: Ended) -> None:
        """The same for who does not wait: `ended` is called once, in the event loop."""
        if self._executor is None:
            ended(_done(work))
        else:
            self._add(path, _Job(work, ended))

    def at_disk(self, *paths: Path) -> set[asyncio.Future[Any]]:
        """The work on these files that threads do now."""
        first = (jobs[0].at_disk for path, jobs in self._jobs.items() if path in paths)
        return {work for work in first if work is not None}

    def _add(self, path: Path, job: _Job) -> _Job:
        """Waits for no longer than the limit, and for a file that hangs not at all."""
        if path in self._hanging:
            job.ended(_hung(path))
            return job
        job.timer = self.clock.call_later(LIMIT_SECONDS, partial(self._give_up, path, job))
        jobs = self._jobs.setdefault(path, deque())
        jobs.append(job)
        if len(jobs) == 1:
            self._start(path, job)
        return job

    def _start(self, path: Path, job: _Job) -> None:
        job.at_disk = asyncio.get_running_loop().run_in_executor(self._executor, job.work)
        job.at_disk.add_done_callback(partial(self._ended, path, job))

    def _withdraw(self, path: Path, job: _Job) -> None:
        """Nobody waits for it any more; what is at the disk goes on."""
        jobs = self._jobs.get(path, deque())
        if job in jobs and jobs[0] is not job:
            _stop(job)
            jobs.remove(job)

    def _give_up(self, path: Path, job: _Job) -> None:
        job.given_up = True
        if path not in self._hanging:
            log.error("disk does not answer path=%s seconds=%.0f", path, LIMIT_SECONDS)
            self._hanging.add(path)
            self.changes.put_nowait(DiskChange(True, self.problem))
        self._withdraw(path, job)
        job.ended(_hung(path))

    def _ended(self, path: Path, job: _Job, done: asyncio.Future[Any]) -> None:
        """Who gave the job up does not ask how it ended."""
        jobs = self._jobs[path]
        jobs.popleft()
        _stop(job)
        if path in self._hanging:
            log.warning("disk answers again path=%s error=%s", path, done.exception())
            self._hanging.discard(path)
            self.changes.put_nowait(DiskChange(False, self.problem))
        if jobs:
            self._start(path, jobs[0])
        else:
            del self._jobs[path]
        if not job.given_up:
            job.ended(done)


def _stop(job: _Job) -> None:
    if job.timer is not None:
        job.timer.cancel()


def _done(work: Callable[[], Any]) -> asyncio.Future[Any]:
    done = asyncio.get_running_loop().create_future()
    try:
        done.set_result(work())
    except Exception as error:  # noqa: BLE001  (it is for who hears of the end)
        done.set_exception(error)
    return done


def _hung(path: Path) -> asyncio.Future[Any]:
    hung = asyncio.get_running_loop().create_future()
    hung.set_exception(Hung(_text(path)))
    return hung


def _tell(waiting: asyncio.Future[Any], done: asyncio.Future[Any]) -> None:
    error = done.exception()
    if waiting.done():
        return
    if error is None:
        waiting.set_result(done.result())
    else:
        waiting.set_exception(error)


def _text(path: Path) -> str:
    return f"{path}: the disk does not answer within {LIMIT_SECONDS:.0f} s"
