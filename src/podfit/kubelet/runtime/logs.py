"""Container logs: CRI's format, tail, time filters and following.

A line is `2026-11-21T03:55:07.000123456Z stdout F text`; tag P marks a piece of a line that goes on in the next record.
Nothing is written into the log by us; `follow` reads on until the container has ended and everything was read.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from podfit.kubelet.disk.safe_paths import open_regular

BLOCK = 64 * 1024
HEAD = 128  # bytes that hold time, stream and tag of a record
MOST_RECORD = 1 << 20  # a runtime's are 16 KiB long; the rest of a longer one is left out
MOST_TAIL = 4 << 20
MOST_SEARCHED = 256 << 20
"""Bytes from the end in which the lines of a tail are looked for: a line may have any number of records."""
POLL_SECONDS = 0.1


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`tail` None = everything; `since` is the earliest timestamp as RFC 3339 in UTC; `limit` in bytes."""

    follow: bool = False
    tail: int | None = None
    since: str = ""
    timestamps: bool = False
    limit: int | None = None


class LogRecord(msgspec.Struct, frozen=True):
    time: str
    stream: str
    partial: bool
    text: bytes

    def render(self, *, timestamps: bool) -> bytes:
        body = self.text if self.partial else self.text + b"\n"
        return self.time.encode() + b" " + body if timestamps else body


def parse(line: bytes) -> LogRecord | None:
    """None for a line that is not CRI's, such as one torn by a crash."""
    parts = line.split(b" ", 3)
    if len(parts) < 3 or parts[1] not in (b"stdout", b"stderr"):
        return None
    text = parts[3] if len(parts) == 4 else b""
    return LogRecord(parts[0].decode(errors="replace"), parts[1].decode(), parts[2].split(b":")[0] == b"P", text)


def tail_text(path: Path, *, lines: int, limit: int) -> str:
    """The end of a log as text, for a termination message; empty when there is none."""
    try:
        data = _last_lines(path, lines)
    except OSError:
        return ""
    text = b"".join(r.render(timestamps=False) for r in map(parse, data.splitlines()) if r is not None)
    return text[-limit:].decode(errors="replace")


async def stream(
    path: Path, options: LogOptions, *, ended: Callable[[], Awaitable[bool]], sleep: Callable[[float], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """The log as `kubectl logs` shows it. Raises OSError before the first item when there is no log."""
    left = options.limit
    with _Log(path) as log:
        if options.tail is not None:
            log.file.seek(await asyncio.to_thread(offset_of_tail, log.file, options.tail, MOST_SEARCHED))
        async for line in _lines(log.read, follow=options.follow, ended=ended, sleep=sleep):
            record = parse(line)
            if record is None or (options.since and _key(record.time) < _key(options.since)):
                continue
            data = record.render(timestamps=options.timestamps)
            if left is not None:
                data, left = data[:left], left - len(data)
            if data:
                yield data
            if left is not None and left <= 0:
                return


class _Log:
    """A log that may be set aside while it is read (`log_rotation`): then the next file is read on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file = open_log(path)

    def __enter__(self) -> "_Log":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def read(self, size: int) -> bytes:
        """Raises OSError."""
        data = self.file.read(size)
        if data or not self._was_replaced():
            return data
        data = self.file.read(size)  # what came between the two looks
        if not data:
            self.file.close()
            self.file = open_log(self._path)
            data = self.file.read(size)
        return data

    def _was_replaced(self) -> bool:
        try:
            return not os.path.samestat(os.lstat(self._path), os.fstat(self.file.fileno()))
        except FileNotFoundError:
            return False


async def _lines(
    read: Callable[[int], bytes],
    *,
    follow: bool,
    ended: Callable[[], Awaitable[bool]],
    sleep: Callable[[float], Awaitable[None]],
) -> AsyncIterator[bytes]:
    rest, last_round = b"", not follow
    while True:
        while block := read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                yield line
            rest = rest[:MOST_RECORD]
            await asyncio.sleep(0)  # lines that are passed over wait for nobody
        if last_round:
            break
        if await ended():
            last_round = True  # what was written before the end may only be there now
        else:
            await sleep(POLL_SECONDS)
    if rest:
        yield rest


def _key(time: str) -> tuple[str, str]:
    """Seconds, then the fraction padded: runtimes cut trailing zeros, so plain text does not sort."""
    whole, _, fraction = time.rstrip("Z").partition(".")
    return whole, fraction.ljust(9, "0")


def open_log(path: Path) -> BinaryIO:
    """Raises OSError: there is none, or something else has been put in its place."""
    return open(open_regular(path), "rb")


def _last_lines(path: Path, lines: int) -> bytes:
    """At most MOST_TAIL bytes from where they begin."""
    with open_log(path) as file:
        file.seek(offset_of_tail(file, lines, MOST_TAIL))
        return file.read(MOST_TAIL)


def offset_of_tail(file: BinaryIO, lines: int, most: int) -> int:
    """Where the last `lines` lines begin, or the first record of the last `most` bytes. A line may consist of several
    records; what is no record is passed over."""
    size = file.seek(0, os.SEEK_END)
    if lines <= 0:
        return size
    following: int | None = None
    for offset, head in _backwards(file, size, most):
        record = parse(head)
        if record is None:
            continue
        if following is not None and not record.partial:  # its line ends here: the record that follows begins one
            lines -= 1
            if not lines:
                return following
        following = offset
    if size <= most:
        return 0
    return size if following is None else following


def _backwards(file: BinaryIO, size: int, most: int) -> Iterator[tuple[int, bytes]]:
    """Raw lines from the last to the first, those that begin in about the last `most` bytes: where each begins, and at
    least its first bytes."""
    behind = b""
    for begin in range((size - 1) // BLOCK * BLOCK, max(-1, size - most - BLOCK), -BLOCK):
        file.seek(begin)
        first, *others = (file.read(min(BLOCK, size - begin)) + behind).split(b"\n")
        position, found = begin + len(first) + 1, []
        for line in others:
            found.append((position, line))
            position += len(line) + 1
        yield from reversed(found)
        if begin == 0:
            yield 0, first
        behind = first[:HEAD]
