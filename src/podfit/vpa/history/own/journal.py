"""The journal: records appended to a file in frames.

    "podfit history 1\n" · frame · frame · …        frame: length, sum of the payload, sum of these two, payload

Numbers are 32 bits, little endian; sums are CRC-32. What a killed writer leaves is a last frame that is cut off: it is
passed over. A sum that is wrong is damage: what stands before it counts, and the file is set aside when it is read.
"""

import os
import struct
from binascii import crc32
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from podfit.vpa.history.own.records import Record, decoder, encode

MAGIC = b"podfit history 1\n"
_HEAD, _SUM = struct.Struct("<II"), struct.Struct("<I")
HEAD = _HEAD.size + _SUM.size
MOST_FRAME = 4 << 20
"""Bytes of a payload; a reading of 50,000 containers has 1 MiB."""
MOST_JOURNAL = 64 << 20
"""Bytes that are read of a journal; the writer closes one at an eighth of it."""


class JournalWriter:
    """A new file, of mode 0600. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size, self._synced = 0, 0
        self._append(MAGIC)

    def append(self, records: Iterable[Record]) -> None:
        """One write for all; after OSError, as on a full disk, none of them is there."""
        self._append(b"".join(_frame(encode(record)) for record in records))

    def _append(self, data: bytes) -> None:
        at = self.size
        try:
            while data:
                written = os.write(self._handle, data)
                data, at = data[written:], at + written
        except OSError:
            os.ftruncate(self._handle, self.size)
            raise
        self.size = at

    def sync(self) -> None:
        """What was appended survives the machine losing power. Raises OSError."""
        size = self.size
        if size != self._synced:
            os.fdatasync(self._handle)
            self._synced = size

    def close(self) -> None:
        os.close(self._handle)


def _frame(payload: bytes) -> bytes:
    head = _HEAD.pack(len(payload), crc32(payload))
    return head + _SUM.pack(crc32(head)) + payload


class Content(NamedTuple):
    """`damage` says where and how; empty for a whole file, also one whose end is still being written."""

    records: list[Record]
    damage: str


def read_journal(path: Path) -> Content:
    """What it has, also while it is written. Raises OSError."""
    with path.open("rb") as file:
        content = file.read(MOST_JOURNAL)
    if not content.startswith(MAGIC):
        return Content([], "" if MAGIC.startswith(content) else "it does not begin as a journal")
    records: list[Record] = []
    at = len(MAGIC)
    while len(content) - at >= HEAD:
        head = content[at : at + _HEAD.size]
        length, total = _HEAD.unpack(head)
        (checked,) = _SUM.unpack_from(content, at + _HEAD.size)
        if checked != crc32(head) or length > MOST_FRAME:
            return Content(records, f"at byte {at}: the sum of a frame's head is wrong")
        payload = content[at + HEAD : at + HEAD + length]
        if len(payload) < length:
            break
        try:
            if total != crc32(payload):
                raise ValueError
            records.append(decoder.decode(payload))
        except (ValueError, msgspec.DecodeError):
            return Content(records, f"at byte {at}: the sum of a frame is wrong")
        at += HEAD + length
    return Content(records, "")
