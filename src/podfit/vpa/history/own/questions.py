"""What the history says of one pod, or of the pods of a workload: usage by equal steps of time, sizes, and marks of
resizes, of memory that ran out and of other recommendations.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from podfit.core.times import format_time
from podfit.decide.history.retention import HistoryFile
from podfit.net.files import one_at_a_time
from podfit.vpa.history.own import tables
from podfit.vpa.history.own.files import HistoryDirectory
from podfit.vpa.history.own.journal import read_journal

T = TypeVar("T")
Row: TypeAlias = Sequence[Any]
MEMORY = "1GB"
STEPS = 60
MOST_CONTAINERS, MOST_MARKS, MOST_ROWS = 1000, 10_000, 1_000_000
ROWS = (
    *("time", "kind", "namespace", "pod", "container", "workload", "vpa", "cpu", "cpu_peak", "memory", "memory_peak"),
    *("throttled", "samples", "cpu_request", "cpu_limit", "memory_request", "memory_limit", "resized"),
    *("cpu_lower", "cpu_upper", "memory_lower", "memory_upper"),
)
"""Columns of a sheet: CPU in millicores, memory in bytes."""


class Subject(msgspec.Struct, frozen=True):
    """A pod, or the pods of a workload; `since` and `until` in seconds since 1970."""

    namespace: str
    kind: str
    name: str
    since: float
    until: float

    @property
    def rows(self) -> str:
        own = "pod = $name" if self.kind == "Pod" else "workload = $workload"
        return (
            f"namespace = $namespace and ({own}) "
            "and time >= make_timestamp_ms($since) and time < make_timestamp_ms($until)"
        )

    @property
    def values(self) -> dict[str, Any]:
        own = {"name": self.name} if self.kind == "Pod" else {"workload": f"{self.kind}/{self.name}"}
        times = {"since": int(self.since * 1000), "until": int(self.until * 1000)}
        return {"namespace": self.namespace, **own, **times}


class Point(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A point of one step: means and peaks, CPU in millicores, memory in bytes; None where nothing was measured."""

    time: str
    cpu: int | None = None
    cpu_peak: int | None = None
    memory: int | None = None
    memory_peak: int | None = None
    throttled: float | None = None


class Mark(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`what` is resized, out of memory, or recommended; amounts are those that hold since then."""

    time: str
    what: str
    step: int
    cpu_request: int | None = None
    cpu_limit: int | None = None
    memory_request: int | None = None
    memory_limit: int | None = None
    cpu: int | None = None
    memory: int | None = None


class ContainerHistory(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`points` are `step` seconds apart, from the beginning to the end of what was asked for."""

    namespace: str
    pod: str
    container: str
    workload: str
    step: int
    points: tuple[Point, ...]
    marks: tuple[Mark, ...]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """`more` when there are containers beyond those that are told of."""

    containers: tuple[ContainerHistory, ...]
    more: bool
    damaged: tuple[str, ...]


class OwnHistory:
    """The history in a directory. Raises OSError where it cannot be read."""

    def __init__(self, directory: HistoryDirectory) -> None:
        self._directory = directory

    def tell(self, about: Subject) -> Told:
        """Raises tables.Problem."""
        return self._asked(about, self._tell)

    def rows(self, about: Subject) -> tuple[Sequence[Row], bool]:
        """Rows as they were recorded, under `ROWS`; and whether there are more than `MOST_ROWS`."""
        return self._asked(about, self._rows)

    def parquet(self, about: Subject) -> bytes:
        """The same, all of them, as a file of columns."""
        return self._asked(about, self._parquet)

    def _asked(self, about: Subject, read: Callable[[tables.Connection, list[str], Subject], T]) -> T:
        with one_at_a_time(self._directory.root, shared=True):
            return read(*self._open(about), about)

    def _open(self, about: Subject) -> tuple[tables.Connection, list[str]]:
        readable = self._directory.readable(about.since)
        opened, damaged = tables.connect(MEMORY, threads=2), list(readable.damaged)
        for journal in readable.journals:
            damaged += self._add(opened, journal)
        tables.show(opened, [self._directory.path(file) for file in readable.segments])
        return opened, damaged

    def _add(self, opened: tables.Connection, journal: HistoryFile) -> Iterator[str]:
        content = read_journal(self._directory.path(journal))
        tables.add(opened, content.records)
        if content.damage:
            yield f"{journal.name}: {content.damage}"

    def _tell(self, opened: tables.Connection, damaged: list[str], about: Subject) -> Told:
        step = max(60, -(-int(about.until - about.since) // STEPS))
        points = self._points(opened, about, step)
        marks = self._marks(opened, about, step)
        last = opened.execute(
            f"select pod, container, arg_max(workload, time) from every where {about.rows} and pod is not null "
            f"group by pod, container order by pod, container limit {MOST_CONTAINERS + 1}",
            about.values,
        ).fetchall()
        containers = tuple(
            ContainerHistory(
                namespace=about.namespace,
                pod=pod,
                container=container,
                workload=workload,
                step=step,
                points=tuple(points.get((pod, container), ())),
                marks=tuple(sorted((*marks.get((pod, container), ()), *marks.get(("", container), ())), key=_when)),
            )
            for pod, container, workload in last[:MOST_CONTAINERS]
        )
        return Told(containers=containers, more=len(last) > MOST_CONTAINERS, damaged=tuple(damaged))

    def _points(self, opened: tables.Connection, about: Subject, step: int) -> dict[tuple[str, str], list[Point]]:
        found = opened.execute(
            "select pod, container, cast((epoch_ms(time) - $since) // ($step * 1000) as bigint) as place, "
            "cast(avg(cpu) as bigint), max(cpu_peak), cast(avg(memory) as bigint), max(memory_peak), avg(throttled) "
            f"from usage where {about.rows} group by pod, container, place order by pod, container, place",
            {**about.values, "step": step},
        ).fetchall()
        number = -(-int(about.until - about.since) // step)
        by_container: dict[tuple[str, str], list[Point]] = {}
        for pod, container, place, *amounts in found:
            if (pod, container) not in by_container:
                by_container[pod, container] = [Point(time=_time(about.since + step * at)) for at in range(number)]
            if place < number:
                cpu, cpu_peak, memory, memory_peak, throttled = amounts
                by_container[pod, container][place] = Point(
                    time=_time(about.since + step * place),
                    cpu=cpu,
                    cpu_peak=cpu_peak,
                    memory=memory,
                    memory_peak=memory_peak,
                    throttled=None if throttled is None else round(throttled, 3),
                )
        return by_container

    def _marks(self, opened: tables.Connection, about: Subject, step: int) -> dict[tuple[str, str], list[Mark]]:
        """Those of a recommendation stand under the workload, without a pod."""
        amounts = "cpu_request, cpu_limit, memory_request, memory_limit, cpu, memory"
        what = "case kind when 'sizes' then 'resized' when 'ooms' then 'out of memory' else 'recommended' end"
        of_vpa = (
            f"kind = 'recommendations' and namespace = $namespace and workload in "
            f"(select workload from every where {about.rows}) "
            "and time >= make_timestamp_ms($since) and time < make_timestamp_ms($until)"
        )
        found = opened.execute(
            f"select coalesce(pod, ''), container, epoch_ms(time), {what}, {amounts} from every "
            f"where ({about.rows} and (kind = 'ooms' or (kind = 'sizes' and resized))) or ({of_vpa}) "
            f"order by time desc limit {MOST_MARKS}",
            about.values,
        ).fetchall()
        marks: dict[tuple[str, str], list[Mark]] = {}
        for pod, container, time, told, *own in found:
            place = int(time / 1000 - about.since) // step
            named = dict(zip(amounts.split(", "), own, strict=True))
            marks.setdefault((pod, container), []).append(Mark(time=_time(time / 1000), what=told, step=place, **named))
        return marks

    def _rows(self, opened: tables.Connection, damaged: list[str], about: Subject) -> tuple[Sequence[Row], bool]:
        query = f"select {', '.join(ROWS)} from every where {about.rows} order by time, pod, container, kind"
        found = opened.execute(f"{query} limit {MOST_ROWS + 1}", about.values).fetchall()
        return found[:MOST_ROWS], len(found) > MOST_ROWS

    def _parquet(self, opened: tables.Connection, damaged: list[str], about: Subject) -> bytes:
        opened.execute(f"create table chosen as select {', '.join(ROWS)} from every where {about.rows}", about.values)
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "history.parquet"
            tables.copy(opened, "select * from chosen order by time, pod, container, kind", path)
            return path.read_bytes()


def _when(mark: Mark) -> str:
    return mark.time


def _time(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))
