"""The allocated and actuated checkpoints, the two files that survive the kubelet (R-090).

Writes are grouped: changes that arrive while a write is on its way share the next one, so fifty pods that resize at
once cost two writes and not fifty. A change becomes visible only when it is durable, and a failed write leaves no trace
of the changes it carried. Writing happens in a thread, which costs 0.1 ms: a slow disk must not stop the event loop.

A disk that does not answer fails the changes that wait for it (see `disk.writer`). Nobody knows then what the file
says of these pods, so the next writing is a whole one, and until then they alone cannot be said to be on disk.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Set
from functools import partial
from pathlib import Path

from podfit.core.clock import Timer
from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.checkpoints.entries import Entries
from podfit.kubelet.checkpoints.file import Disk, Write, journal_of
from podfit.kubelet.checkpoints.format import Damaged, EntryEncoder, Texts
from podfit.kubelet.disk.writer import DiskWriter, Hung
from podfit.net.files import write_atomic

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0  # without a change: then the file is brought up to date, and the journal made ready


class CheckpointError(Exception):
    """The change could not be made durable, and was not made."""


class Checkpoint(Entries):
    """A checkpoint, as durable as the file at `path`. `get` never shows what is not on disk; the file loses a pod that
    is dropped at its next writing.

    `journaled`: changes go into a journal beside the file (see `file`); `durable` is then about that.
    """

    def __init__(
        self,
        path: Path,
        writer: DiskWriter,
        *,
        write: Write = write_atomic,
        journaled: bool = False,
        durable: bool = True,
    ) -> None:
        super().__init__(path.name)
        self.path = path
        self.damage = ""
        """What was wrong with the file that was found; empty when nothing was."""
        self.set_aside: Path | None = None
        """Where the damaged file is now; None when there was none, or it could not be renamed yet."""
        self._writer, self._journaled = writer, journaled
        self._disk = Disk(path, write, journal_of(path, durable=durable) if journaled else None)
        self._texter = EntryEncoder()
        self._entries = self._read()
        self._written: Texts = self._texter.texts(self._entries)
        self._owes = False  # the next `put` writes, even one that changes nothing
        self._behind = False  # the next writing is a whole one
        self._waiting: dict[str, PodResources] = {}
        self._writing: Set[str] = frozenset()  # the pods whose change is, or may be, on its way to the disk
        self._told: list[asyncio.Future[None]] = []  # of those that wait for `_waiting`
        self._idle = asyncio.Event()  # the file is being written by nobody
        self._idle.set()
        self._timer: Timer | None = None

    def _read(self) -> dict[str, PodResources]:
        """A missing file is an empty one. A damaged one is put aside under a new name and is never a reason to stop."""
        try:
            return self._disk.read()
        except FileNotFoundError:
            return {}
        except (Damaged, OSError) as error:
            self.damage = str(error)
        try:
            self._put_aside()
        except OSError as error:
            log.warning(
                "checkpoint is damaged and stays in place path=%s reason=%s error=%s", self.path, self.damage, error
            )
        return {}

    def _put_aside(self) -> None:
        """Raises OSError."""
        self.set_aside = self._disk.put_aside()
        log.warning("checkpoint set aside path=%s as=%s reason=%s", self.path, self.set_aside, self.damage)

    @property
    def is_lost(self) -> bool:
        return bool(self.damage)

    async def put(self, changes: Mapping[str, PodResources]) -> None:
        """Return when the changes are on disk and visible; CheckpointError when they are neither."""
        same = all(self._entries.get(uid) == resources for uid, resources in changes.items())
        if same and not self._owes and changes.keys().isdisjoint(self._waiting.keys() | self._writing):
            return
        self._waiting.update(changes)
        told = asyncio.get_running_loop().create_future()
        self._told.append(told)
        if self._idle.is_set():
            self._write()
        await told

    async def catch_up(self) -> None:
        """Write the file after it was behind. Raises CheckpointError."""
        self._owes = self._owes or self._behind
        await self.put({})

    def restore(self, entries: Mapping[str, PodResources]) -> None:
        """The next `put`, even one that changes nothing, writes it."""
        super().restore(entries)
        self._owes = self._behind = True

    async def close(self) -> None:
        """Leave a file that holds everything by itself, if that can be written."""
        if self._timer is not None:
            self._timer.cancel()
        await self.supervisor.finish()
        await self._fold(prepare=False)

    def _write(self) -> None:
        """Begin to write what waits. In this turn of the loop: who has changed a size waits for the disk alone."""
        write = _Write(self._waiting, self._told, self._texter.texts({**self._entries, **self._waiting}))
        self._waiting, self._told = {}, []
        if write.texts == self._written and not self._behind:
            self._wrote(write)
            return
        self._idle.clear()
        self._writing = self._writing | write.changes.keys()
        before = self._written
        write.put = [uid for uid, text in write.texts.items() if before.get(uid) != text]
        quick = self._disk.quick and not self._behind and all(uid in before for uid in write.put)
        save = partial(self._disk.save, write.texts, write.put, before.keys() - write.texts.keys())
        work = save if quick else partial(self._replace, write.texts)
        self._writer.begin(self.path, work, partial(self._ended, write))

    def _ended(self, write: "_Write", done: asyncio.Future[None]) -> None:
        try:
            self._take_end(write, done)
        finally:
            self._next()

    def _take_end(self, write: "_Write", done: asyncio.Future[None]) -> None:
        try:
            done.result()
        except Hung as error:
            self._behind = True
            write.failed(CheckpointError(f"could not write {error}"))
        except OSError as error:
            self._writing = self._writing if self._behind else frozenset()
            write.failed(CheckpointError(f"could not write {self.path}: {error.strerror or error}"))
        except Exception as error:  # noqa: BLE001  (it is raised where the change is waited for)
            write.failed(error)
        else:
            self._writing = frozenset()
            if any(uid in self._written for uid in write.put):
                self._fold_soon()
            self._wrote(write)

    def _wrote(self, write: "_Write") -> None:
        self._written, self._owes, self._behind = write.texts, False, False
        self._entries.update(write.changes)
        self.on_put(write.changes)
        write.done()

    def _next(self) -> None:
        """The file is free."""
        self._idle.set()
        if self._told:
            self._write()

    def _replace(self, texts: Texts) -> None:
        """A damaged file that could not be renamed before has to be, or this would overwrite it. Raises OSError."""
        if self.damage and self.set_aside is None:
            self._put_aside()
        self._disk.replace(texts)

    def _fold_soon(self) -> None:
        """When no change has come for a moment; the first one does not wait for the others to end."""
        if not self._journaled or not (self._disk.quick or self._timer is None):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._writer.clock.call_later(IDLE_SECONDS, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        folding = self._fold(prepare=True)
        self.supervisor.begin(folding, name=f"fold {self.path.name}")

    async def _fold(self, *, prepare: bool) -> None:
        while not self._idle.is_set():
            await self._idle.wait()
        if self.damage and self.set_aside is None:
            return
        self._idle.clear()
        try:
            if not self._disk.whole:
                await self._writer.run(self.path, partial(self._disk.replace, self._written))
            if prepare:
                await self._writer.run(self.path, self._disk.prepare)
        except OSError as error:
            log.warning("checkpoint not folded, its journal holds the rest path=%s error=%s", self.path, error)
        finally:
            self._next()


class _Write:
    """Changes that are written together: the texts with them, of which those of `put` are new."""

    def __init__(self, changes: Mapping[str, PodResources], told: list[asyncio.Future[None]], texts: Texts) -> None:
        self.changes, self.texts = changes, texts
        self.put: Collection[str] = ()
        self._told = told

    def done(self) -> None:
        for told in self._told:
            if not told.done():
                told.set_result(None)

    def failed(self, error: Exception) -> None:
        for told in self._told:
            if not told.done():
                told.set_exception(error)
