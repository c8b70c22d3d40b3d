"""The notes of `decide.attempts` on disk: which pods are being worked on now.

`unfinished_pods` holds a JSON record a line, each the newest word about its pod, and zeros behind them: the file has
its size before the first record, so making one durable is writing data and no change of the file system. A record
survives the end of the process at once, and that of the machine when `durable` returns. What cannot be written is
logged, and pods run all the same.
"""

import asyncio
import logging
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from podfit.decide.attempts import Mark, Note, Verdict, after_crash, after_stop, verdict
from podfit.net.files import write_atomic

log = logging.getLogger(__name__)

SIZE = 64 * 1024


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Without a mark the pod is done."""

    uid: str
    form: str = ""
    mark: Mark | None = None


class Attempts:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._notes: dict[str, Note] = {}
        self._file = -1
        self._at = 0
        self._size = 0

    def recover(self) -> None:
        """Read what the last process left."""
        content = self._content()
        self._notes = after_crash(_notes(content))
        if content.strip(b"\0") or len(content) < SIZE:
            self._rewrite()
        else:  # as a kubelet leaves it that was stopped
            self._open(at=0, size=len(content))

    def of(self, uid: str, form: str) -> Verdict:
        return verdict(self._notes.get(uid), form)

    @property
    def busy(self) -> bool:
        """Whether some pod's work has begun and is not over."""
        return any(note.mark in (Mark.STARTED, Mark.ALONE) for note in self._notes.values())

    def has_begun(self, uid: str) -> bool:
        note = self._notes.get(uid)
        return note is not None and note.mark in (Mark.STARTED, Mark.ALONE)

    def begin(self, forms: Iterable[tuple[str, str]], mark: Mark = Mark.STARTED) -> None:
        """Work on these pods (UID and form) is about to begin. `durable` waits for the disk."""
        records = [_Record(uid, form, mark) for uid, form in forms]
        self._notes.update((record.uid, Note(record.form, mark)) for record in records)
        self._append(records)

    async def durable(self) -> None:
        """Returns when what was said survives the machine losing power."""
        if self._file < 0:
            return
        file = os.dup(self._file)  # the file may be written anew meanwhile
        try:
            await asyncio.to_thread(os.fdatasync, file)
        except OSError as error:
            log.warning("cannot note which pods are being worked on path=%s error=%s", self._path, error)
        finally:
            os.close(file)

    def done(self, uid: str) -> None:
        """A turn of the pod is over, or the pod is gone. The disk is not waited for."""
        if self._notes.pop(uid, None) is not None:
            self._append([_Record(uid)])

    def close(self) -> None:
        """The kubelet was told to stop."""
        if self._file >= 0:
            self._notes = after_stop(self._notes)
            self._rewrite()
            self._release()

    def _content(self) -> bytes:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            log.warning("cannot read which pods were being worked on path=%s error=%s", self._path, error)
            return b""

    def _append(self, records: Iterable[_Record]) -> None:
        data = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        if self._file < 0:
            return
        if self._at + len(data) > self._size:
            self._rewrite()
            return
        try:
            os.pwrite(self._file, data, self._at)
            self._at += len(data)
        except OSError as error:
            log.warning("cannot note which pods are being worked on path=%s error=%s", self._path, error)

    def _rewrite(self) -> None:
        """The whole file, from what is known now, with room for as much again."""
        records = [_Record(uid, note.form, note.mark) for uid, note in self._notes.items()]
        data = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        self._release()
        size = max(SIZE, 2 * len(data))
        try:
            write_atomic(self._path, data.ljust(size, b"\0"))
        except OSError as error:
            log.warning("cannot note which pods are being worked on path=%s error=%s", self._path, error)
        else:
            self._open(at=len(data), size=size)

    def _open(self, *, at: int, size: int) -> None:
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            log.warning("cannot note which pods are being worked on path=%s error=%s", self._path, error)
        self._at, self._size = at, size

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _notes(content: bytes) -> dict[str, Note]:
    notes: dict[str, Note] = {}
    for line in content.rstrip(b"\0").splitlines():
        try:
            record = msgspec.json.decode(line, type=_Record)
        except msgspec.DecodeError:  # cut off by the crash
            continue
        notes.pop(record.uid, None)
        if record.mark is not None:
            notes[record.uid] = Note(record.form, record.mark)
    return notes
