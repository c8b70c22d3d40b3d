"""Questions in SQL about the history, each in a process of its own that can do nothing but answer it.

    python -m podfit.vpa.history.own.queries    an `Asked` as JSON on its input, an `Answer` as JSON on its output

It has no environment, may write no file, may not grow beyond its memory and its time, and opens no other files than
segments once the statement is read; `decide.history.select_only` says which statements are run at all.
"""

import asyncio
import datetime
import json
import os
import resource
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from podfit.core.clock import Clock
from podfit.decide.history.select_only import LARGEST, refused
from podfit.net.files import one_at_a_time
from podfit.vpa.history.own.children import child
from podfit.vpa.history.own.files import HistoryDirectory
from podfit.vpa.history.own.journal import read_journal

MODULE = "podfit.vpa.history.own.queries"
MOST_ROWS, MOST_SECONDS, MOST_MEMORY = 1_000_000, 3600.0, 16_384
MOST_ANSWER = 64 << 20
BESIDE = 1 << 30
"""Bytes of addresses for what the library takes besides: stacks of its threads, pools, the answer as it is written."""
GRACE = 5.0
FILES = 512


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """`memory` in MiB."""

    directory: str
    sql: str
    rows: int = 10_000
    seconds: float = 30.0
    memory: int = 512


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`refused` says what may not be asked, `failed` what went wrong; `more` that there are rows beyond the last."""

    columns: list[str] = []
    rows: list[list[Any]] = []
    more: bool = False
    refused: str = ""
    failed: str = ""
    damaged: list[str] = []


# ---------------------------------------------------------------- the process that answers


def confine(asked: Asked) -> None:
    """From now on it can write no file and dump no core, and has so much memory and CPU."""
    limits = {
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_AS: _addresses() + (asked.memory << 20) + BESIDE,
        resource.RLIMIT_CPU: int(2 * asked.seconds + GRACE),
    }
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _addresses() -> int:
    """Bytes that this process has already, its code and that of the library."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def answer(asked: Asked) -> Answer:
    """Raises OSError, MemoryError, and tables.Problem."""
    directory = HistoryDirectory(Path(asked.directory))
    with one_at_a_time(directory.root, shared=True):
        return _answer(directory, asked)


def _answer(directory: HistoryDirectory, asked: Asked) -> Answer:
    from podfit.vpa.history.own import tables

    readable = directory.readable(0.0)
    damaged = list(readable.damaged)
    opened = tables.connect(f"{asked.memory}MB", threads=2)
    for journal in readable.journals:
        content = read_journal(directory.path(journal))
        tables.add(opened, content.records)
        damaged += [f"{journal.name}: {content.damage}"] if content.damage else []
    segments = [directory.path(file) for file in readable.segments]
    tables.show(opened, segments)
    tables.lock(opened, segments)
    sql = asked.sql.strip().removesuffix(";")
    bounded = f"select * from (\n{sql}\n) limit {asked.rows + 1}"
    for text in (sql, bounded):
        (tree,) = opened.execute("select json_serialize_sql(?::varchar)", [text]).fetchone() or ("{}",)
        if why := refused(json.loads(tree), tables.VIEWS):
            return Answer(refused=why, damaged=damaged)
    timer = threading.Timer(asked.seconds, opened.interrupt)
    timer.daemon = True
    timer.start()
    found = opened.execute(bounded)
    columns = [column[0] for column in found.description or ()]
    rows = [[_plain(value) for value in row] for row in found.fetchmany(asked.rows + 1)]
    return Answer(columns=columns, rows=rows[: asked.rows], more=len(rows) > asked.rows, damaged=damaged)


def _plain(value: Any) -> Any:
    """The value as JSON has it; what it has no word for as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else str(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return value.hex() if isinstance(value, bytes) else str(value)


def main() -> None:
    from podfit.vpa.history.own import tables

    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Asked)
    confine(asked)
    try:
        told = msgspec.json.encode(answer(asked))
    except (tables.Problem, MemoryError, RecursionError) as error:
        told = msgspec.json.encode(Answer(failed=_said(error, asked)))
    if len(told) > MOST_ANSWER:
        told = msgspec.json.encode(Answer(failed=f"the answer has more than {MOST_ANSWER >> 20} MiB; select less"))
    sys.stdout.buffer.write(told)
    sys.stdout.buffer.flush()
    os._exit(0)  # threads of the library may still be ending


def _said(error: Exception, asked: Asked) -> str:
    """In one line."""
    text = str(error).partition("\n")[0].strip()
    if "Interrupted" in text or "INTERRUPT" in text:
        return f"it took more than {asked.seconds:g} s"
    if isinstance(error, MemoryError | RecursionError) or "Out of Memory" in text or "bad_alloc" in text:
        return f"it needs more than {asked.memory} MiB of memory"
    return text or type(error).__name__


# ---------------------------------------------------------------- who asks


async def ask(asked: Asked, clock: Clock, tell: Callable[[str], None]) -> Answer:
    """`tell` is told now and then that it still works."""
    if len(asked.sql) > LARGEST:
        return Answer(refused=f"a question has at most {LARGEST} characters")
    process = await child(MODULE, asked)
    try:
        async with asyncio.TaskGroup() as group:
            telling = group.create_task(_tell(asked, clock, tell))
            try:
                async with asyncio.timeout(asked.seconds + 2 * GRACE):
                    told, said = await process.communicate()
            except TimeoutError:
                return Answer(failed=f"it took more than {asked.seconds:g} s")
            finally:
                telling.cancel()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    if process.returncode == 0:
        return msgspec.json.decode(told, type=Answer)
    last = said.decode(errors="replace").strip().rpartition("\n")[2]
    return Answer(failed=_of_process(process.returncode or 0, last, asked))


def _of_process(code: int, said: str, asked: Asked) -> str:
    """Why it ended."""
    if "MemoryError" in said or "bad_alloc" in said or -code in (6, 9, 11):
        return f"it needs more than {asked.memory} MiB of memory"
    return said or f"its process ended with {code}"


EVERY = 5.0


async def _tell(asked: Asked, clock: Clock, tell: Callable[[str], None]) -> None:
    passed = 0.0
    while True:
        await clock.sleep(EVERY)
        passed += EVERY
        tell(f"still reading, for {passed:.0f} s; at most {asked.seconds:g} s")


if __name__ == "__main__":
    main()
