"""The history as a recommender starts from it: a process reads the segments, and hands over arrays block by block.

    python -m podfit.vpa.history.own.streaming    an `Asked` as JSON on its input, frames on its output

A frame is its length, 32 bits, and MessagePack: first a `Head`, then a `Part` for each block. The recommender has one
block in its memory at a time, and never the library.
"""

import asyncio
import struct
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from podfit.decide.autoscaling.tracked import PodKey
from podfit.decide.history.retention import HistoryFile
from podfit.net.files import one_at_a_time
from podfit.vpa.history.own.children import child
from podfit.vpa.history.own.files import HistoryDirectory
from podfit.vpa.history.own.journal import read_journal
from podfit.vpa.history.own.records import labels_from
from podfit.vpa.history.past_usage import MOST_OF_BLOCK, Block, Container, PastOom, PastPod, ReadPast, Samples

MODULE = "podfit.vpa.history.own.streaming"
MEMORY = "512MB"
AT_ONCE = 1_000_000
"""Samples that the process reads together."""
MOST_FRAME = 256 << 20
_LENGTH = struct.Struct("<I")
MINUTE = 60
S = TypeVar("S")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a namespace, or of all; seconds since 1970."""

    directory: str
    since: float
    until: float
    namespace: str = ""


class Head(msgspec.Struct, frozen=True):
    """Namespace, pod, container and labels (as JSON) of each; `damaged` says which files were left out."""

    containers: list[tuple[str, str, str, str]]
    damaged: list[str]


class Part(msgspec.Struct, frozen=True):
    """Arrays as bytes: int32 numbers, float64 times, int64 amounts, of which -1 is none. OOMs: number, bytes, time."""

    series: bytes
    times: bytes
    cpu: bytes
    memory: bytes
    weight: int
    ooms: list[tuple[int, int, float]]


# ---------------------------------------------------------------- the process that reads


def frames(asked: Asked) -> Iterator[Head | Part]:
    """Raises OSError, and tables.Problem."""
    directory = HistoryDirectory(Path(asked.directory))
    with one_at_a_time(directory.root, shared=True):
        yield from _frames(directory, asked)


def _frames(directory: HistoryDirectory, asked: Asked) -> Iterator[Head | Part]:
    from podfit.vpa.history.own import tables

    readable = directory.readable(asked.since)
    every = sorted((*readable.segments, *readable.journals))
    opened = tables.connect(MEMORY, threads=2)
    damaged = readable.damaged + _add_journals(opened, directory, readable.journals)
    tables.show(opened, [directory.path(file) for file in readable.segments])
    where = "where (namespace = ? or ? = '')"
    about = [asked.namespace, asked.namespace]
    known = opened.execute(
        f"select namespace, pod, container, coalesce(arg_max(labels, time), '') from containers {where} "
        "group by namespace, pod, container order by all",
        about,
    ).fetchall()
    yield Head(known, damaged)
    numbers = {name: np.array([row[place] for row in known], dtype=object) for place, name in enumerate(_NAMES)}
    opened.register("numbers", {**numbers, "number": np.arange(len(known), dtype=np.int32)})
    if known:
        opened.execute("create table numbered as select * from numbers")
        for source in _sources(directory, every):
            yield from _parts(opened, source, asked)


_NAMES = ("namespace", "pod", "container")


def _add_journals(opened: Any, directory: HistoryDirectory, journals: list[HistoryFile]) -> list[str]:
    from podfit.vpa.history.own import tables

    damaged = list[str]()
    for journal in journals:
        content = read_journal(directory.path(journal))
        tables.add(opened, content.records)
        damaged += [f"{journal.name}: {content.damage}"] if content.damage else []
    return damaged


class _Source(msgspec.Struct, frozen=True):
    table: str
    weight: int


def _sources(directory: HistoryDirectory, files: list[HistoryFile]) -> Iterator[_Source]:
    """Segments in the order of time, then what is in journals."""
    from podfit.vpa.history.own import tables

    for file in files:
        if file.sum:
            yield _Source(f"({tables.select_all([directory.path(file)])})", max(1, file.step // MINUTE))
    yield _Source("live", 1)


def _parts(opened: Any, source: _Source, asked: Asked) -> Iterator[Part]:
    (number, first, last) = opened.execute(
        f"select count(*), epoch_ms(min(time)), epoch_ms(max(time)) from {source.table} where kind = 'usage'"
    ).fetchone()
    if not number:
        return
    slices = 1 + number // AT_ONCE
    begin, end = max(first, int(asked.since * 1000)), min(last, int(asked.until * 1000)) + 1
    edges = [begin + (end - begin) * place // slices for place in range(slices + 1)]
    for low, high in pairwise(edges):
        ooms = opened.execute(
            f"select number, memory, epoch_ms(time) from {source.table} join numbered using (namespace, pod, container)"
            f" where kind = 'ooms' and time >= make_timestamp_ms({low}) and time < make_timestamp_ms({high})"
            " order by time"
        ).fetchall()
        columns = opened.execute(
            "select number, epoch_ms(time) as time, coalesce(cpu, -1) as cpu, "
            f"coalesce(memory_peak, memory, -1) as memory from {source.table} "
            "join numbered using (namespace, pod, container) where kind = 'usage' "
            f"and time >= make_timestamp_ms({low}) and time < make_timestamp_ms({high}) order by time"
        ).fetchnumpy()
        yield from _cut(columns, ooms, source.weight)


def _cut(columns: Mapping[str, Any], ooms: list[tuple[int, int, int]], weight: int) -> Iterator[Part]:
    """Blocks, each with what ran out of memory until its last sample."""
    times = np.asarray(columns["time"]) / 1000.0
    total = len(times)
    for first in range(0, total, MOST_OF_BLOCK):
        last = first + MOST_OF_BLOCK
        own = [oom for oom in ooms if last >= total or oom[2] / 1000.0 <= times[last - 1]]
        ooms = ooms[len(own) :]
        yield Part(
            np.asarray(columns["number"][first:last], dtype=np.int32).tobytes(),
            times[first:last].tobytes(),
            np.asarray(columns["cpu"][first:last], dtype=np.int64).tobytes(),
            np.asarray(columns["memory"][first:last], dtype=np.int64).tobytes(),
            weight,
            [(number, memory, time / 1000.0) for number, memory, time in own],
        )


def main() -> None:
    from podfit.vpa.history.own import tables

    try:
        for frame in frames(msgspec.json.decode(sys.stdin.buffer.read(), type=Asked)):
            payload = msgspec.msgpack.encode(frame)
            sys.stdout.buffer.write(_LENGTH.pack(len(payload)) + payload)
        sys.stdout.buffer.flush()
    except (OSError, tables.Problem) as error:
        sys.exit(str(error).partition("\n")[0])


# ---------------------------------------------------------------- the recommender's side


class OwnPast:
    """A `Past` of which the other end is a process."""

    def __init__(self, head: Head, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._containers: list[Container] = [
            (PodKey(namespace, pod), name) for namespace, pod, name, _ in head.containers
        ]
        names: dict[PodKey, list[str]] = {}
        labels: dict[PodKey, Mapping[str, str] | None] = {}
        for namespace, pod, container, text in head.containers:
            names.setdefault(PodKey(namespace, pod), []).append(container)
            labels[PodKey(namespace, pod)] = labels_from(text)
        self.pods = {key: PastPod(tuple(own), labels[key]) for key, own in names.items()}

    async def blocks(self) -> AsyncGenerator[Block, None]:
        try:
            while (part := await _next(self._process, Part)) is not None:
                yield self.block(part)
            await _ended(self._process)
        finally:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def block(self, part: Part) -> Block:
        series, times = np.frombuffer(part.series, np.int32).astype(np.intp), np.frombuffer(part.times, np.float64)
        cpu, memory = np.frombuffer(part.cpu, np.int64), np.frombuffer(part.memory, np.int64)
        has_cpu, has_memory = cpu >= 0, memory >= 0
        return Block(
            containers=self._containers,
            cpu=Samples(series[has_cpu], times[has_cpu], cpu[has_cpu].astype(np.float64), part.weight),
            memory=Samples(series[has_memory], times[has_memory], memory[has_memory].astype(np.float64), part.weight),
            ooms=tuple(PastOom(self._containers[number], memory, time) for number, memory, time in part.ooms),
        )


async def _next(process: asyncio.subprocess.Process, kind: type[S]) -> S | None:
    """None at the end. Raises ConnectionError."""
    assert process.stdout is not None
    try:
        (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
        if length > MOST_FRAME:
            raise ConnectionError(f"the history: a frame of {length} bytes")
        return msgspec.msgpack.decode(await process.stdout.readexactly(length), type=kind)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ConnectionError("the history: its reader ended in the middle") from error
        return None
    except msgspec.DecodeError as error:
        raise ConnectionError(f"the history: {error}") from error


async def _ended(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    said = (await process.stderr.read(64 << 10)).decode(errors="replace").strip().rpartition("\n")[2]
    if await process.wait():
        raise ConnectionError(f"the history: its reader ended with {process.returncode}: {said}")


def own_history(directory: Path, length: float, namespace: str, tell: Any) -> ReadPast:
    """What `directory` has of the last `length` seconds. `tell` is told of each damaged file."""

    async def read(now: float) -> OwnPast:
        asked = Asked(directory=str(directory), since=now - length, until=now, namespace=namespace)
        process = await child(MODULE, asked)
        head = await _next(process, Head)
        if head is None:
            await _ended(process)
            raise ConnectionError("the history: its reader told nothing")
        for file in head.damaged:
            tell(file)
        return OwnPast(head, process)

    return read


if __name__ == "__main__":
    main()
