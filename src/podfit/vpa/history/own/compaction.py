"""Compaction: journals become segments, and segments smaller ones. A process of its own, so that the recommender never
has the library in its memory.

    python -m podfit.vpa.history.own.compaction    a `Wanted` as JSON on its input, a line for each thing that it did

It does what `decide.history.retention.next_task` says until nothing is left to do.
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from podfit.decide.history.retention import Convert, Drop, HistoryFile, Limits, Merge, Task, file_of, next_task
from podfit.net.files import one_at_a_time
from podfit.vpa.history.own.children import child
from podfit.vpa.history.own.files import NEW, HistoryDirectory
from podfit.vpa.history.own.journal import read_journal

MODULE = "podfit.vpa.history.own.compaction"
MEMORY = "192MB"
MOST_TASKS = 100_000
MOST_TOLD = 64 << 10
NICE = 10
log = logging.getLogger(__name__)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """`active` is the name of the journal that is being written; `now` in seconds since 1970."""

    directory: str
    now: float
    active: str = ""
    limits: Limits = Limits()


class Compaction:
    """Each task in a directory that it has for itself meanwhile."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted, self._directory = wanted, HistoryDirectory(Path(wanted.directory))

    def run(self) -> Iterator[str]:
        """What was done, a line each. Raises OSError, and tables.Problem."""
        with one_at_a_time(self._directory.root):
            for left in self._directory.root.glob(f"*{NEW}"):
                left.unlink(missing_ok=True)
            for spilled in self._directory.root.glob("spill-*"):
                shutil.rmtree(spilled)
        active = file_of(self._wanted.active)
        for _ in range(MOST_TASKS):
            with one_at_a_time(self._directory.root):  # who reads has its turn between two tasks
                task = next_task(self._directory.files(), self._wanted.now, self._wanted.limits, active)
                done = list(self._carry_out(task)) if task is not None else []
            yield from done
            if task is None:
                return

    def _carry_out(self, task: Task) -> Iterator[str]:
        match task:
            case Drop(file, why):
                self._directory.remove((file,))
                yield f"dropped {file.name}: {why}"
            case Convert(journal, into):
                yield from self._convert(journal, into)
            case Merge(sources, into):
                yield from self._merge(sources, into)

    def _convert(self, journal: HistoryFile, into: HistoryFile) -> Iterator[str]:
        from podfit.vpa.history.own import tables

        content = read_journal(self._directory.path(journal))
        connection = tables.connect(MEMORY)
        tables.add(connection, content.records)
        made = self._directory.publish(into, lambda path: tables.write(connection, "select * from live", path))
        yield f"wrote {made.name} of {made.size} bytes from {journal.name}"
        if content.damage:
            self._directory.set_aside(journal)
            yield f"damaged {journal.name}: {content.damage}"
        else:
            self._directory.remove((journal,))

    def _merge(self, sources: tuple[HistoryFile, ...], into: HistoryFile) -> Iterator[str]:
        from podfit.vpa.history.own import tables

        good = [file for file in sources if self._directory.whole(file)]
        for file in sources:
            if file not in good:
                self._directory.set_aside(file)
                yield f"damaged {file.name}: its bytes are not those that were written"
        if not good:
            return
        source = tables.select_all(self._directory.path(file) for file in good)
        query = tables.rolled_up(source, into.step) if into.step else tables.as_of_day(source)
        with tempfile.TemporaryDirectory(prefix="spill-", dir=self._directory.root) as spill:
            connection = tables.connect(MEMORY, spill=Path(spill))
            made = self._directory.publish(into, lambda path: tables.write(connection, query, path))
            connection.close()
        self._directory.remove(good)
        yield f"wrote {made.name} of {made.size} bytes from {len(good)} files"


async def compact(wanted: Wanted) -> None:
    """Have it done by a process of its own. Raises ConnectionError where that fails; damage is a warning."""
    process = await child(MODULE, wanted)
    try:
        told, failed = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    for line in told[-MOST_TOLD:].decode(errors="replace").splitlines():
        log.log(logging.WARNING if line.startswith(("damaged", "dropped")) else logging.DEBUG, "history %s", line)
    if process.returncode:
        said = failed[-MOST_TOLD:].decode(errors="replace").strip().rpartition("\n")[2]
        raise ConnectionError(f"its compaction ended with {process.returncode}: {said}")


Compact = Callable[[Wanted], Any]


def main() -> None:
    from podfit.vpa.history.own import tables

    os.nice(NICE)
    try:
        for line in Compaction(msgspec.json.decode(sys.stdin.buffer.read(), type=Wanted)).run():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    except (OSError, tables.Problem) as error:
        sys.exit(str(error).partition("\n")[0])


if __name__ == "__main__":
    main()
