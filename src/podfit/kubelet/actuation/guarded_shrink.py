"""Carries out a guarded memory shrink (`decide.resize.guarded_shrink`, docs/shrink.md) on cgroup v2.

    async with guard.hold() as hold:
        problem = await hold.shrink('container "c1"', path, limit)     "" = the limit may be lowered now
        …                                                               lower it
                                                                        every memory.high is as it was

Lowering memory.high makes the kernel reclaim before the write returns, which can take as long as a disk does; so it is
done in a thread of the hold's own. What puts things back goes through the same thread and can therefore not be
overtaken, and is done even when the pod is deleted meanwhile. What memory.high was is noted in a file first, so that a
kubelet that died half way puts it back when it starts again.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

import msgspec

from podfit.core.clock import Clock
from podfit.decide.resize import guarded_shrink as guarded
from podfit.decide.resize.guarded_shrink import GuardedShrink, Lower, ReclaimStep, Stop, UsageReading
from podfit.kubelet.cgroup.protocol import UNLIMITED, CgroupError, Cgroups, Missing
from podfit.net.files import write_atomic

log = logging.getLogger(__name__)


class GuardRecord(msgspec.Struct, frozen=True):
    """A cgroup whose memory.high is not as it was: `high` is what it was, None = `max`."""

    path: str
    high: int | None


class Unnoted(Exception):
    """What memory.high was could not be written down, so it is left as it is."""


class Guard:
    """`notes` is a folder of the kubelet's."""

    def __init__(self, cgroups: Cgroups, clock: Clock, notes: Path) -> None:
        self.cgroups, self.clock, self._notes = cgroups, clock, notes

    def hold(self) -> "Hold":
        return Hold(self)

    def recover(self) -> None:
        """Put back what a kubelet that died has left; to be called before anything is resized."""
        for file in self._notes.glob("*.json") if self._notes.is_dir() else ():
            try:
                note = msgspec.json.decode(file.read_bytes(), type=GuardRecord)
            except msgspec.DecodeError as error:
                log.warning("unreadable note of a guarded shrink file=%s error=%s", file, error)
                file.unlink()
            else:
                log.info("memory.high is put back cgroup=%s high=%s", note.path, note.high)
                self.put_back(note)

    def lower(self, note: GuardRecord, *, high: int, reclaim: int, first: bool) -> None:
        if first:
            try:
                write_atomic(self._file(note.path), msgspec.json.encode(note))
            except OSError as error:
                raise Unnoted(f"what memory.high was cannot be noted: {error}") from error
        self.cgroups.set_memory_high(note.path, high)
        if reclaim:
            self.cgroups.reclaim(note.path, reclaim)

    def put_back(self, note: GuardRecord, *, ours: int | None = None) -> None:
        """Puts it back, with `ours` only if that is still what is there: with Memory QoS the runtime may have set a new
        value."""
        try:
            if ours is None or self.cgroups.memory_high(note.path) == ours:
                self.cgroups.set_memory_high(note.path, UNLIMITED if note.high is None else note.high)
        except Missing:
            log.debug("the cgroup went, and its memory.high with it cgroup=%s", note.path)
        except CgroupError as error:
            log.warning("memory.high is not as it was; the next start tries again cgroup=%s error=%s", note.path, error)
            return
        try:
            self._file(note.path).unlink(missing_ok=True)
        except OSError as error:
            log.warning(
                "the note of memory.high stays, the next start puts it back again cgroup=%s error=%s", note.path, error
            )

    def _file(self, path: str) -> Path:
        return self._notes / f"{hashlib.sha256(path.encode()).hexdigest()[:16]}.json"


class Hold:
    """The cgroups that are held down together, until it is left."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._notes: dict[str, GuardRecord] = {}
        self._highs: dict[str, int] = {}
        self._thread: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> "Hold":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            try:
                await self._in_thread(self._put_back)
            finally:
                self._thread.shutdown(wait=False)

    async def shrink(self, who: str, path: str, limit: int) -> str:
        """Bring the usage of a cgroup below `limit` by a margin and hold it there. Why not, where it will not; `who` is
        for that text. Raises CgroupError.
        """
        cgroups, clock = self._guard.cgroups, self._guard.clock
        note = GuardRecord(path, cgroups.memory_high(path))
        shrink, began = GuardedShrink(limit=limit, previous=note.high), clock.monotonic()
        while True:
            seen = self._look(path, began)
            shrink, action = shrink.following(seen)
            try:
                match action:
                    case Stop(reason=reason):
                        return guarded.objection(who, limit, seen.usage, reason)
                    case ReclaimStep(high=high, reclaim=reclaim):
                        await self._press(note, high, reclaim)
                    case Lower(high=high):
                        await self._press(note, high, 0)
                        if self._look(path, began).usage <= shrink.goal:
                            return ""
            except Unnoted as error:
                del self._notes[path]
                return guarded.objection(who, limit, seen.usage, str(error))
            await clock.sleep(guarded.PAUSE)

    def _look(self, path: str, began: float) -> UsageReading:
        cgroups = self._guard.cgroups
        usage = cgroups.memory_usage(path)
        if usage is None:
            raise CgroupError(f"the memory usage of {path} cannot be read")
        return UsageReading(usage=usage, at=self._guard.clock.monotonic() - began, stalled=cgroups.memory_stall(path))

    async def _press(self, note: GuardRecord, high: int, reclaim: int) -> None:
        first = note.path not in self._notes
        self._notes[note.path], self._highs[note.path] = note, high
        await self._in_thread(lambda: self._guard.lower(note, high=high, reclaim=reclaim, first=first))

    def _put_back(self) -> None:
        for note in self._notes.values():
            self._guard.put_back(note, ours=self._highs[note.path])

    async def _in_thread(self, work: Callable[[], None]) -> None:
        """Done even when nobody waits for it any more, and never before what was asked for earlier."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="guard")
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, work))
