"""Container logs: CRI's format, tail, time filters and following.

A line is `2026-11-21T03:55:07.000123456Z stdout F text`; tag P marks a piece of a line that goes on in the next record.
Nothing is written into the log by us; `follow` reads on until the container has ended and everything was read.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec

BLOCK = 64 * 1024
POLL_SECONDS = 0.1


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`tail` None = everything; `since` is the earliest timestamp as RFC 3339 in UTC; `limit` in bytes."""

    follow: bool = False
    tail: int | None = None
    since: str = ""
    timestamps: bool = False
    limit: int | None = None


class Record(msgspec.Struct, frozen=True):
    time: str
    stream: str
    partial: bool
    text: bytes

    def render(self, *, timestamps: bool) -> bytes:
        body = self.text if self.partial else self.text + b"\n"
        return self.time.encode() + b" " + body if timestamps else body


def parse(line: bytes) -> Record | None:
    """None for a line that is not CRI's, such as one torn by a crash."""
    parts = line.split(b" ", 3)
    if len(parts) < 3 or parts[1] not in (b"stdout", b"stderr"):
        return None
    text = parts[3] if len(parts) == 4 else b""
    return Record(parts[0].decode(errors="replace"), parts[1].decode(), parts[2].split(b":")[0] == b"P", text)


def tail_text(path: Path, *, lines: int, limit: int) -> str:
    """The end of a log as text, for a termination message; empty when there is none."""
    try:
        data = _last_lines(path, lines)
    except OSError:
        return ""
    text = b"".join(r.render(timestamps=False) for r in map(parse, data.splitlines()) if r is not None)
    return text[-limit:].decode(errors="replace")


async def stream(
    path: Path, options: LogOptions, *, ended: Callable[[], Awaitable[bool]], sleep: Callable[[float], Awaitable[None]],
) -> AsyncIterator[bytes]:
    """The log as `kubectl logs` shows it. Raises FileNotFoundError before the first item when there is no log."""
    left = options.limit
    start = await asyncio.to_thread(_offset_of_tail, path, options.tail) if options.tail is not None else 0
    with path.open("rb") as file:
        file.seek(start)
        async for line in _lines(file.read, follow=options.follow, ended=ended, sleep=sleep):
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


async def _lines(
    read: Callable[[int], bytes], *, follow: bool, ended: Callable[[], Awaitable[bool]],
    sleep: Callable[[float], Awaitable[None]],
) -> AsyncIterator[bytes]:
    rest, last_round = b"", not follow
    while True:
        while block := read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                yield line
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


def _last_lines(path: Path, lines: int) -> bytes:
    with path.open("rb") as file:
        file.seek(_offset_of_tail(path, lines))
        return file.read()


def _offset_of_tail(path: Path, lines: int) -> int:
    """Where the last `lines` lines begin, found by reading twice as much from the end until there are enough."""
    size, window = path.stat().st_size, BLOCK
    if lines <= 0:
        return size
    with path.open("rb") as file:
        while True:
            begin = max(0, size - window)
            file.seek(begin)
            starts = _line_starts(file.read(size - begin), whole=begin == 0)
            if len(starts) >= lines:
                return begin + starts[-lines]
            if begin == 0:
                return 0
            window *= 2


def _line_starts(data: bytes, *, whole: bool) -> list[int]:
    """Offsets at which log lines surely begin. A line may consist of several records; what is no record is passed over.

    Unless `data` is the `whole` file, it begins somewhere inside of a record, and nobody knows how the line began.
    """
    starts, position, inside = [], 0, not whole
    for number, raw in enumerate(data.split(b"\n")):
        record = parse(raw) if whole or number else None
        if record is not None:
            if not inside:
                starts.append(position)
            inside = record.partial
        position += len(raw) + 1
    return starts
