"""Files of the history: what becomes of each with age, and what is dropped.

    journal   what the recommender appends, an hour of it or 8 MiB
    part      one journal, as a segment that is never changed
    day       the parts of a day (UTC), samples as they were taken
    tens      that day by ten minutes: means and peaks
    hours     that day by the hour

A segment takes the place of what it was made of: it is written whole before those are removed, and while both are there
it alone counts (`counted`), so that a crash in between loses nothing and counts nothing twice. Times are seconds since
1970, sizes bytes.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import TypeAlias

import msgspec

HOUR, DAY = 3600, 86_400
JOURNAL = HOUR
"""Seconds that one journal is written for; so a file of a day holds what came so much later, too."""
STEPS = {"tens": 600, "hours": HOUR}
"""Seconds of one row of a segment that is rolled up."""
_NAME = re.compile(r"(journal|part|day|tens|hours)-([0-9]{1,12})-([0-9]{1,6})(?:-([0-9a-f]{16}))?\.(?:log|parquet)")


class Level(IntEnum):
    """The larger ones are made of the smaller."""

    JOURNAL = 0
    PART = 1
    DAY = 2
    TENS = 3
    HOURS = 4


class HistoryFile(msgspec.Struct, frozen=True, order=True):
    """`begin` is when a journal was opened, or the first second of a segment's day; `serial` tells journals of the same
    second apart; `sum` is that of a segment's bytes.
    """

    begin: int
    serial: int
    level: Level
    size: int = 0
    sum: str = ""

    @property
    def name(self) -> str:
        """A segment's has its sum in it, so a damaged one is seen by whoever reads it."""
        stem = f"{self.level.name.lower()}-{self.begin}-{self.serial}"
        return f"{stem}.log" if self.level is Level.JOURNAL else f"{stem}-{self.sum}.parquet"

    @property
    def day(self) -> int:
        return self.begin - self.begin % DAY

    @property
    def until(self) -> int:
        """Nothing in it is of this second or later: it is made of journals that were opened in its day."""
        return self.day + DAY + JOURNAL

    @property
    def step(self) -> int:
        """Seconds of a row; 0 where each is a sample."""
        return STEPS.get(self.level.name.lower(), 0)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Ages are counted from the end of a day."""

    samples: float = 9 * DAY
    tens: float = 30 * DAY
    hours: float = 365 * DAY
    size: int = 1 << 30
    settle: float = JOURNAL  # a day is put together when it has been over for this long


DEFAULT_LIMITS = Limits()


class Convert(msgspec.Struct, frozen=True):
    journal: HistoryFile
    into: HistoryFile


class Merge(msgspec.Struct, frozen=True):
    sources: tuple[HistoryFile, ...]
    into: HistoryFile


class Drop(msgspec.Struct, frozen=True):
    file: HistoryFile
    why: str


Task: TypeAlias = Convert | Merge | Drop
REPLACED, OLD, ROOM = "another file holds it", "too old", "the history is larger than it may be"


def file_of(name: str, size: int = 0) -> HistoryFile | None:
    """None for a name that no file of the history has."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    level = Level[match[1].upper()]
    file = HistoryFile(int(match[2]), int(match[3]), level, size, match[4] or "")
    return file if file.name == name else None


def counted(files: Iterable[HistoryFile]) -> list[HistoryFile]:
    """Without those that another holds, in the order of time."""
    every = tuple(files)
    parts = {(file.begin, file.serial) for file in every if file.level is Level.PART}
    highest: dict[int, Level] = {}
    for file in every:
        if file.level >= Level.DAY:
            highest[file.day] = max(file.level, highest.get(file.day, Level.DAY))

    def held(file: HistoryFile) -> bool:
        if file.level is Level.JOURNAL and (file.begin, file.serial) in parts:
            return True
        return file.level < highest.get(file.day, Level.JOURNAL)

    return sorted(file for file in every if not held(file))


def next_journal(files: Collection[HistoryFile], now: float) -> HistoryFile:
    """The journal to open. It begins no earlier than the last day that is put together ends, whatever the clock says:
    that day's segment would take its place.
    """
    closed = max((file.day + DAY for file in files if file.level >= Level.DAY), default=0)
    begin = max(int(now), closed)
    taken = {file.serial for file in files if file.begin == begin and file.level <= Level.PART}
    return HistoryFile(begin, max(taken, default=-1) + 1, Level.JOURNAL)


def next_task(
    files: Iterable[HistoryFile], now: float, limits: Limits = DEFAULT_LIMITS, active: HistoryFile | None = None
) -> Task | None:
    """What is to be done first; None when nothing is. `active` is the journal that is written."""
    every = sorted(files)
    kept = counted(every)
    for file in every:
        if file not in kept:
            return Drop(file, REPLACED)
    own = (active.begin, active.serial) if active is not None else None
    closed = [file for file in kept if file.level is not Level.JOURNAL or (file.begin, file.serial) != own]
    for file in closed:
        if file.level is Level.JOURNAL:
            return Convert(file, HistoryFile(file.begin, file.serial, Level.PART))
    return _merge(kept, now, limits) or _old(kept, now, limits) or _too_much(closed, kept, limits)


def _merge(kept: Sequence[HistoryFile], now: float, limits: Limits) -> Merge | None:
    for day in sorted({file.day for file in kept}):
        members = tuple(file for file in kept if file.day == day)
        age = now - (day + DAY)
        level = min(file.level for file in members)
        if level is Level.PART and age >= limits.settle:
            return Merge(members, HistoryFile(day, 0, Level.DAY))
        if level is Level.DAY and age >= limits.samples:
            return Merge(members, HistoryFile(day, 0, Level.TENS))
        if level is Level.TENS and age >= limits.tens:
            return Merge(members, HistoryFile(day, 0, Level.HOURS))
    return None


def _old(kept: Sequence[HistoryFile], now: float, limits: Limits) -> Drop | None:
    ended = (file for file in kept if file.level >= Level.DAY and now - (file.day + DAY) >= limits.hours)
    return next((Drop(file, OLD) for file in ended), None)


def _too_much(closed: Sequence[HistoryFile], kept: Sequence[HistoryFile], limits: Limits) -> Drop | None:
    """The oldest goes first."""
    if not closed or sum(file.size for file in kept) <= limits.size:
        return None
    return Drop(closed[0], ROOM)
