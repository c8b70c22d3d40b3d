"""The file of `decide.pod.attempts`: which pods are being worked on now, and how often the kubelet ended meanwhile.

`unfinished_pods` holds a JSON record a line, each the newest word about its pod, and zeros behind them: the file has
its size before the first record, so making one durable is writing data and no change of the file system. What cannot
be written is logged, and pods run all the same.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from podfit.decide.pod.attempts import AttemptRecord, AttemptVerdict, Mark, after_crash, after_stop, verdict
from podfit.kubelet.disk.writer import DiskWriter
from podfit.net.files import write_atomic
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

SIZE = 64 * 1024


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Without a mark the pod is done."""

    uid: str
    form: str = ""
    mark: Mark | None = None


class Attempts:
    """`synced`: a pod may take the machine down with it, so what is said has to outlive that."""

    def __init__(self, path: Path, writer: DiskWriter, *, synced: bool = True) -> None:
        self._writer, self._synced = writer, synced
        self._file = _File(path)
        self._notes: dict[str, AttemptRecord] = {}
        self._unwritten: list[_Record] = []
        self._stale = False  # records were lost on their way: the file is written whole
        self.supervisor = Supervisor("unfinished pods")
        self._saving: asyncio.Task[None] | None = None

    async def recover(self) -> None:
        """Read what the last process left."""
        content = self._file.content()
        self._notes = after_crash(_notes(content))
        if content.strip(b"\0") or len(content) < SIZE:
            await self._write(partial(self._file.rewrite, dict(self._notes)))
        else:  # as a kubelet leaves it that was stopped
            self._file.open(at=0, size=len(content))

    def of(self, uid: str, form: str) -> AttemptVerdict:
        return verdict(self._notes.get(uid), form)

    @property
    def busy(self) -> bool:
        """Whether some pod's work has begun and is not over."""
        return any(note.mark in (Mark.STARTED, Mark.ALONE) for note in self._notes.values())

    def has_begun(self, uid: str) -> bool:
        note = self._notes.get(uid)
        return note is not None and note.mark in (Mark.STARTED, Mark.ALONE)

    def begin(self, forms: Iterable[tuple[str, str]], mark: Mark = Mark.STARTED) -> None:
        """Work on these pods (UID and form) is about to begin: once `durable` has returned."""
        records = [_Record(uid, form, mark) for uid, form in forms]
        self._notes.update((record.uid, AttemptRecord(record.form, mark)) for record in records)
        self._unwritten += records

    async def durable(self) -> None:
        """Returns when what was said survives what a pod may do, or could not be written."""
        await self._save(durable=self._synced)

    def done(self, uid: str) -> None:
        """A turn of the pod is over, or the pod is gone. The disk is not waited for."""
        if self._notes.pop(uid, None) is not None:
            self._unwritten.append(_Record(uid))
            if self._saving is None or self._saving.done():
                self._saving = self.supervisor.begin(self._save_all(), name="write unfinished_pods")

    async def close(self) -> None:
        """The kubelet was told to stop."""
        await self.supervisor.finish()
        if self._file.is_open:
            self._notes = after_stop(self._notes)
            await self._write(partial(self._file.rewrite, dict(self._notes)))
            self._file.release()

    async def _save_all(self) -> None:
        while self._unwritten:
            await self._save(durable=False)

    async def _save(self, *, durable: bool) -> None:
        records, self._unwritten = self._unwritten, []
        notes = dict(self._notes)
        if self._stale:
            await self._write(partial(self._file.rewrite, notes))
        else:
            await self._write(partial(self._file.append, records, notes, durable=durable))

    async def _write(self, work: Callable[[], None]) -> None:
        try:
            await self._writer.run(self._file.path, work)
        except OSError as error:
            self._stale = True
            log.warning("cannot note which pods are being worked on path=%s error=%s", self._file.path, error)
        else:
            self._stale = False


class _File:
    """Each call waits for the disk; but for `content` and `open` they raise OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1
        self._at = 0
        self._size = 0

    @property
    def is_open(self) -> bool:
        return self._file >= 0

    def content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            log.warning("cannot read which pods were being worked on path=%s error=%s", self.path, error)
            return b""

    def append(self, records: Iterable[_Record], notes: Mapping[str, AttemptRecord], *, durable: bool) -> None:
        """`notes` are what the file is to say with these records."""
        data = _lines(records)
        if self._file < 0:
            return
        if self._at + len(data) > self._size:
            self.rewrite(notes)
            return
        os.pwrite(self._file, data, self._at)
        self._at += len(data)
        if durable:
            os.fdatasync(self._file)

    def rewrite(self, notes: Mapping[str, AttemptRecord]) -> None:
        """The whole file, with room for as much again."""
        data = _lines(_Record(uid, note.form, note.mark) for uid, note in notes.items())
        self.release()
        size = max(SIZE, 2 * len(data))
        write_atomic(self.path, data.ljust(size, b"\0"))
        self.open(at=len(data), size=size)

    def open(self, *, at: int, size: int) -> None:
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            log.warning("cannot note which pods are being worked on path=%s error=%s", self.path, error)
        self._at, self._size = at, size

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _lines(records: Iterable[_Record]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def _notes(content: bytes) -> dict[str, AttemptRecord]:
    notes: dict[str, AttemptRecord] = {}
    for line in content.rstrip(b"\0").splitlines():
        try:
            record = msgspec.json.decode(line, type=_Record)
        except msgspec.DecodeError:  # cut off by the crash
            continue
        notes.pop(record.uid, None)
        if record.mark is not None:
            notes[record.uid] = AttemptRecord(record.form, record.mark)
    return notes
