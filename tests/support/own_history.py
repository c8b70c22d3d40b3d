"""A history of podfit's own, as a recorder would have left it."""

import math
from pathlib import Path

from podfit.decide.history.retention import HistoryFile, Level, Limits
from podfit.vpa.history.own.compaction import Compaction, Wanted
from podfit.vpa.history.own.files import HistoryDirectory
from podfit.vpa.history.own.journal import JournalWriter
from podfit.vpa.history.own.records import (
    ContainerRecord,
    OomRecord,
    RecommendationRecord,
    Record,
    SizeRecord,
    UsageRecord,
)

MINUTE, HOUR, DAY = 60, 3600, 86_400
MEBI = 1 << 20


def directory(path: Path) -> HistoryDirectory:
    made = HistoryDirectory(path)
    made.create()
    return made


def usage_of(pod: int, minute: int) -> tuple[int, int]:
    """CPU and memory: a wave by the day, higher for later pods."""
    wave = 1 + math.sin(2 * math.pi * minute / 1440)
    return int(100 + 50 * wave + 10 * pod), int((100 + 20 * wave + pod) * MEBI)


def write_journal(
    into: HistoryDirectory,
    begin: int,
    *,
    pods: int = 2,
    minutes: int = 60,
    events: bool = False,
    namespace: str = "default",
) -> HistoryFile:
    """Of pods web-0, web-1, ... of the Deployment web; with `events` web-0 is resized, and runs out of memory."""
    file = HistoryFile(begin, 0, Level.JOURNAL)
    writer = JournalWriter(into.path(file))
    first: list[Record] = []
    for pod in range(pods):
        first.append(
            ContainerRecord(pod, begin * 1000, namespace, f"web-{pod}", "app", "Deployment/web", '{"app":"web"}')
        )
        first.append(SizeRecord(begin * 1000, pod, 100, 200, 64 * MEBI, 128 * MEBI, resized=False))
    writer.append(first)
    for minute in range(minutes):
        time, told = begin + MINUTE * minute, [usage_of(pod, begin // MINUTE + minute) for pod in range(pods)]
        columns = [cpu for cpu, _ in told], [memory for _, memory in told]
        writer.append([UsageRecord(time * 1000, list(range(pods)), [0] * pods, *columns, [250] * pods)])
    if events:
        writer.append(
            [
                SizeRecord((begin + 600) * 1000, 0, 150, 300, 64 * MEBI, 256 * MEBI, resized=True),
                OomRecord((begin + 1200) * 1000, 0, 64 * MEBI),
                RecommendationRecord(
                    begin * 1000, "default", "web", "Deployment/web", "app", 120, 90, 200, *([80 * MEBI] * 3)
                ),
            ]
        )
    writer.sync()
    writer.close()
    return file


def compacted(of: HistoryDirectory, now: float, limits: Limits = Limits()) -> list[str]:  # noqa: B008  (frozen)
    """What was done."""
    return list(Compaction(Wanted(directory=str(of.root), now=now, limits=limits)).run())
