"""The allocated and actuated checkpoints, the two files that survive the kubelet (R-090).

Writes are grouped: changes that arrive while a write is on its way share the next one, so fifty pods that resize at
once cost two writes and not fifty. A change becomes visible only when it is durable, and a failed write leaves no trace
of the changes it carried. Writing happens in a thread, which costs 0.1 ms: a slow disk must not stop the event loop.

A disk that does not answer fails the changes that wait for it (see `disk.writer`). Nobody knows then what the file
says of these pods, so the next writing is a whole one, and until then they alone cannot be said to be on disk.
"""

import asyncio
import logging
from collections.abc import Mapping, Set
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
        self._next: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()
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
        if self._next is None:
            self._next = self.supervisor.hold(self._flush(), name=f"write {self.path.name}")
        await asyncio.shield(self._next)

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

    async def _flush(self) -> None:
        async with self._busy:
            changes, self._waiting, self._next = self._waiting, {}, None
            texts = self._texter.texts({**self._entries, **changes})
            if texts != self._written or self._behind:
                await self._write(texts, self._writing | changes.keys())
            self._written, self._owes, self._behind = texts, False, False
            self._entries.update(changes)
            self.on_put(changes)

    async def _write(self, texts: Texts, uids: Set[str]) -> None:
        self._writing = uids
        try:
            await self._save(texts)
        except Hung as error:
            self._behind = True
            raise CheckpointError(f"could not write {error}") from error
        except OSError as error:
            self._writing = uids if self._behind else frozenset()
            raise CheckpointError(f"could not write {self.path}: {error.strerror or error}") from error
        self._writing = frozenset()

    async def _save(self, texts: Texts) -> None:
        before = self._written
        put = [uid for uid, text in texts.items() if before.get(uid) != text]
        quick = self._disk.quick and not self._behind and all(uid in before for uid in put)
        save = partial(self._disk.save, texts, put, before.keys() - texts.keys())
        await self._writer.run(self.path, save if quick else partial(self._replace, texts))
        if any(uid in before for uid in put):
            self._fold_soon()

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
        async with self._busy:
            if self.damage and self.set_aside is None:
                return
            try:
                if not self._disk.whole:
                    await self._writer.run(self.path, partial(self._disk.replace, self._written))
                if prepare:
                    await self._writer.run(self.path, self._disk.prepare)
            except OSError as error:
                log.warning("checkpoint not folded, its journal holds the rest path=%s error=%s", self.path, error)
