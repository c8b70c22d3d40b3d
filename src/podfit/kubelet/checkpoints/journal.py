"""The journal of a checkpoint: records appended to a second file, so that a change waits for the disk once and not four
times.

    checksum record\\n checksum record\\n … zeros up to SIZE

The file has its size and its blocks before the first record, so to write a record is to write data: the file system's
own journal, in which every other commit of this disk stands in line, has no part in it.

What a crash leaves is one of these:

    the last record was cut off        it was never acted on, and is passed over
    the first byte is zero             the file that the records change was written whole after them; they are over
    the file is another                a checksum begins with that of the file, so records of another mean nothing
"""

import os
from hashlib import blake2b
from pathlib import Path

from podfit.kubelet.checkpoints.format import Damaged
from podfit.net.files import sync_directory

SIZE = 32 * 1024
_SUM = 8  # bytes


class Journal:
    """`durable`: a record survives the machine losing power, or else only the process that wrote it."""

    def __init__(self, path: Path, *, durable: bool = True, size: int = SIZE) -> None:
        self.path = path
        self._durable = durable
        self._size = size
        self._key = b""  # none: it is not known which file is there
        self._at = 0  # where the next record goes
        self._holds = False  # records that are not over
        self._prepared = False

    @property
    def ready(self) -> bool:
        """Whether records can be written."""
        return self._prepared and bool(self._key)

    @property
    def empty(self) -> bool:
        """Whether the file alone holds everything."""
        return not self._holds and bool(self._key)

    def read(self, base: bytes) -> list[bytes]:
        """The records that change `base`. Raises Damaged, OSError."""
        self._key = _key(base)
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        self._at = len(content.rstrip(b"\0"))
        found = _records(content, self._key)
        self._holds = bool(found)
        return found

    def leave(self) -> None:
        """The file is about to be another, or perhaps not: no record is written before `follow`."""
        self._key = b""

    def follow(self, base: bytes) -> None:
        """From now on records change this, and those that were written before are over. Raises OSError."""
        if self._at:
            self._prepared = False
            self._overwrite(1)
        self._key, self._holds = _key(base), False

    def prepare(self) -> None:
        """Make the file, or clear it of records that are over. Raises OSError."""
        self._prepared = False
        if self.path.exists() and self.path.stat().st_size == self._size:
            self._overwrite(self._at)
        else:
            self._make()
        self._at, self._prepared = 0, True

    def append(self, record: bytes) -> bool:
        """Write a record without a newline; False when there is no room. After OSError the journal has to be prepared,
        and what was written of the record is over once the file is written whole.
        """
        line = b"%b %b\n" % (_sum(self._key, record), record)
        if self._at + len(line) > self._size:
            return False
        self._prepared, self._holds = False, True
        at, self._at = self._at, self._at + len(line)
        self._write(line, at)
        self._prepared = True
        return True

    def _make(self) -> None:
        self.path.unlink(missing_ok=True)
        self._write(b"\0" * self._size, 0, flags=os.O_CREAT)
        if self._durable:
            sync_directory(self.path.parent)

    def _overwrite(self, length: int) -> None:
        if length and self.path.exists():
            self._write(b"\0" * length, 0)

    def _write(self, data: bytes, at: int, *, flags: int = 0) -> None:
        """Opened anew each time: a file system that was made read-only since then is to say so."""
        synced = os.O_DSYNC if self._durable else 0
        handle = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | synced | flags, 0o600)
        try:
            while data:
                written = os.pwrite(handle, data, at)
                data, at = data[written:], at + written
        finally:
            os.close(handle)


def _records(content: bytes, key: bytes) -> list[bytes]:
    """Up to the first that is not whole; behind that there must be none, or what stands between was lost."""
    found: list[bytes] = []
    if content.startswith(b"\0"):
        return found
    broken = False
    for line in content.split(b"\n"):
        total, _, record = line.partition(b" ")
        whole = total == _sum(key, record)
        if whole and broken:
            raise Damaged(f"record {len(found) + 1} of the journal is damaged, and others follow it")
        broken = broken or not whole
        if whole:
            found.append(record)
    return found


def _key(base: bytes) -> bytes:
    return blake2b(base, digest_size=32).digest()


def _sum(key: bytes, record: bytes) -> bytes:
    return blake2b(record, key=key, digest_size=_SUM).hexdigest().encode()
