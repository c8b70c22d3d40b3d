"""What becomes of the files of a history: nothing is lost or counted twice on the way, and its size is bounded."""

import random
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from podfit.decide.history.retention import (
    DAY,
    HOUR,
    OLD,
    ROOM,
    Convert,
    Drop,
    HistoryFile,
    Level,
    Limits,
    Merge,
    counted,
    file_of,
    next_journal,
    next_task,
)

BEGIN = 20_000 * DAY


@pytest.mark.parametrize(
    "file",
    [
        HistoryFile(BEGIN, 0, Level.JOURNAL, 7),
        HistoryFile(BEGIN + 5, 3, Level.PART, 7, "0123456789abcdef"),
        HistoryFile(BEGIN, 0, Level.HOURS, 7, "fedcba9876543210"),
    ],
)
def test_a_file_is_known_by_its_name(file: HistoryFile) -> None:
    assert file_of(file.name, 7) == file


@pytest.mark.parametrize(
    "name",
    [
        "lock",
        "journal-1-0.parquet",
        "journal-01-0.log",
        "day-1-0.parquet",
        "day-1-0-0123456789abcdef.log",
        "day-1-0-0123456789abcdef.parquet.damaged",
        "week-1-0-0123456789abcdef.parquet",
        "../journal-1-0.log",
        f"journal-{'9' * 13}-0.log",
    ],
)
def test_other_names_are_no_files_of_it(name: str) -> None:
    assert file_of(name) is None


@dataclass
class Disk:
    """Files with the hours that each holds; a journal has 1,000 bytes, a segment 100 for each hour."""

    held: dict[HistoryFile, frozenset[int]] = field(default_factory=dict)

    def take(self, task: Convert | Merge | Drop, *, crash: bool) -> None:
        """A crash comes when the new file is there, and what it was made of as well."""
        if isinstance(task, Drop):
            del self.held[task.file]
            return
        sources = (task.journal,) if isinstance(task, Convert) else task.sources
        hours = frozenset[int]().union(*(self.held[source] for source in sources))
        self.held[replace(task.into, sum="0" * 16, size=100 * len(hours))] = hours
        if not crash:
            for source in sources:
                del self.held[source]

    def hours(self) -> list[int]:
        return sorted(hour for file in counted(self.held) for hour in self.held[file])


@pytest.mark.parametrize("seed", range(5))
def test_every_hour_counts_once_through_all_levels_and_crashes(seed: int) -> None:
    chance, disk = random.Random(seed), Disk()
    limits = Limits(samples=3 * DAY, tens=6 * DAY, hours=12 * DAY)
    for hour in range(24 * 20):
        now = BEGIN + hour * HOUR
        active = replace(next_journal(disk.held, now), size=1000)
        disk.held[active] = frozenset((hour,))
        while (task := next_task(disk.held, now, limits, active)) is not None:
            before = disk.hours()
            disk.take(task, crash=chance.random() < 0.3)
            if isinstance(task, Drop) and task.why == OLD:
                assert now - (task.file.day + DAY) >= limits.hours
            else:
                assert disk.hours() == before
            assert active in disk.held
    assert disk.hours() == list(range(24 * 7, 24 * 20))
    assert {file.level for file in disk.held} == set(Level)


def test_of_more_than_it_may_have_the_oldest_goes() -> None:
    files = [HistoryFile(BEGIN + day * DAY, 0, Level.TENS, 400, "0" * 16) for day in range(5)]
    active = HistoryFile(BEGIN + 5 * DAY, 0, Level.JOURNAL, 400)
    now, limits = BEGIN + 5 * DAY, Limits(size=2000)
    assert next_task([*files, active], now, limits, active) == Drop(files[0], ROOM)
    assert next_task([*files[1:], active], now, limits, active) is None
    assert next_task([active], now, Limits(size=1), active) is None, "what is being written stays"


def test_a_day_with_a_journal_that_is_still_written_is_not_put_together() -> None:
    part = HistoryFile(BEGIN, 0, Level.PART, 10, "0" * 16)
    active = HistoryFile(BEGIN + 23 * HOUR, 0, Level.JOURNAL, 10)
    late = BEGIN + 3 * DAY
    assert next_task([part, active], late, active=active) is None
    assert isinstance(next_task([part, active], late), Convert)
    assert isinstance(next_task([part], late), Merge)
    assert next_task([part], BEGIN + DAY + HOUR - 1) is None


def test_a_journal_of_a_clock_that_went_back_does_not_fall_into_a_day_that_is_done() -> None:
    done = HistoryFile(BEGIN, 0, Level.DAY, 10, "0" * 16)
    opened = next_journal([done], BEGIN + 5.0)
    assert opened.begin == BEGIN + DAY
    assert counted([done, opened]) == [done, opened]
    assert next_journal([done, opened], BEGIN + 6.0).serial == 1
