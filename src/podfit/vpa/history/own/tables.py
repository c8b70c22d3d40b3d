"""Segments and the views over them: the one door to DuckDB.

All that was recorded stands in one wide table, so that a file is replaced whole; each view has the rows and columns of
one thing. Times are UTC, CPU is millicores, memory bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from podfit.vpa.history.own.records import (
    ContainerRecord,
    OomRecord,
    RecommendationRecord,
    Record,
    SizeRecord,
    UsageRecord,
)

Connection: TypeAlias = duckdb.DuckDBPyConnection
Problem = duckdb.Error
COLUMNS = {
    "kind": "varchar",
    "time": "timestamp",
    "namespace": "varchar",
    "pod": "varchar",
    "container": "varchar",
    "workload": "varchar",
    "labels": "varchar",
    "vpa": "varchar",
    "cpu": "bigint",
    "cpu_peak": "bigint",
    "memory": "bigint",
    "memory_peak": "bigint",
    "throttled": "float",
    "samples": "integer",
    "cpu_request": "bigint",
    "cpu_limit": "bigint",
    "memory_request": "bigint",
    "memory_limit": "bigint",
    "resized": "boolean",
    "cpu_lower": "bigint",
    "cpu_upper": "bigint",
    "memory_lower": "bigint",
    "memory_upper": "bigint",
}
_WHO = "time, namespace, pod, container, workload"
_SIZES = "cpu_request, cpu_limit, memory_request, memory_limit"
VIEWS = {
    "usage": f"{_WHO}, cpu, coalesce(cpu_peak, cpu) as cpu_peak, memory, coalesce(memory_peak, memory) as memory_peak, "
    "throttled, samples",
    "sizes": f"{_WHO}, {_SIZES}, resized",
    "ooms": f"{_WHO}, memory",
    "recommendations": "time, namespace, vpa, workload, container, cpu, cpu_lower, cpu_upper, memory, memory_lower, "
    "memory_upper",
    "containers": f"{_WHO}, labels",
}
"""What may be asked: each has the rows of its name."""
_USAGE = f"kind, {_WHO}, cpu, cpu_peak, memory, memory_peak, throttled, samples"
"""What most rows have: no more is sorted of them."""
_ORDER = "kind, namespace, pod, container, time"
_LOCKED: Mapping[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
}


def connect(memory: str = "256MB", threads: int = 1, spill: Path | None = None) -> Connection:
    """A connection with the empty table `live`. It holds `memory` at most in tables and sorts; what is more goes to the
    directory `spill`."""
    config = {**_LOCKED, "memory_limit": memory, "threads": threads, "temp_directory": str(spill or "")}
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("set timezone = 'UTC'")
    connection.execute(f"create table live ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
    return connection


def show(connection: Connection, segments: Sequence[Path]) -> None:
    """Make the views, over segments and what is in `live`."""
    files = ", ".join(_quoted(path) for path in segments)
    both = f"select * from read_parquet([{files}]) union all by name " if segments else ""
    connection.execute(f"create view every as {both}select * from live")
    for name, columns in VIEWS.items():
        connection.execute(f"create view {name} as select {columns} from every where kind = '{name}'")


def lock(connection: Connection, segments: Sequence[Path]) -> None:
    """From now on it opens these files and no other, and its settings stay."""
    connection.execute(f"set allowed_paths = [{', '.join(_quoted(path) for path in segments)}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def write(connection: Connection, query: str, path: Path) -> None:
    """A segment of what the query selects, in the order in which it packs and is searched best."""
    usage = f"select {_USAGE} from ({query}) where kind = 'usage' order by {_ORDER}"
    others = f"select * from ({query}) where kind <> 'usage' order by {_ORDER}"
    copy(connection, f"select * from live where false union all by name ({usage}) union all by name ({others})", path)


def copy(connection: Connection, query: str, path: Path) -> None:
    """What the query selects, as a file of columns."""
    connection.execute(f"copy ({query}) to {_quoted(path)} (format parquet, compression zstd, row_group_size 61440)")


def select_all(segments: Iterable[Path]) -> str:
    return f"select * from read_parquet([{', '.join(_quoted(path) for path in segments)}], union_by_name = true)"


def as_of_day(source: str) -> str:
    """A day put together: what each journal said again at its beginning is kept where it is another than before."""
    same = f"[{_SIZES}] is not distinct from lag([{_SIZES}]) over who and lag(kind) over who is not null"
    return (
        f"select * from ({source}) where kind not in ('sizes', 'containers') union all by name "
        f"select * from ({source}) where kind = 'sizes' window who as (partition by namespace, pod, container "
        f"order by time) qualify resized or not ({same}) union all by name "
        f"select * from ({source}) where kind = 'containers' "
        "qualify row_number() over (partition by namespace, pod, container order by time desc) = 1"
    )


def rolled_up(source: str, seconds: int) -> str:
    """Usage by so many seconds: means weighted by samples, and peaks; all else as it is."""
    mean = "cast(round(sum({0} * samples) / sum(samples) filter ({0} is not null)) as bigint) as {0}"
    return (
        f"select * from ({source}) where kind <> 'usage' union all by name "
        f"select kind, time_bucket(interval {seconds} seconds, time) as time, namespace, pod, container, "
        f"any_value(workload) as workload, {mean.format('cpu')}, max(coalesce(cpu_peak, cpu)) as cpu_peak, "
        f"{mean.format('memory')}, max(coalesce(memory_peak, memory)) as memory_peak, "
        "avg(throttled) as throttled, cast(sum(samples) as integer) as samples "
        f"from ({source}) where kind = 'usage' group by kind, 2, namespace, pod, container"
    )


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def add(connection: Connection, records: Sequence[Record]) -> None:
    """Put what a journal has into `live`."""
    told = [record for record in records if isinstance(record, RecommendationRecord)]
    if told:
        amounts = ("cpu", "cpu_lower", "cpu_upper", "memory", "memory_lower", "memory_upper")
        columns = {**_plain(told, ("time", *amounts)), **_texts(told, ("namespace", "vpa", "workload", "container"))}
        _insert(connection, "recommendations", columns, named=False)
    containers = {record.number: record for record in records if isinstance(record, ContainerRecord)}
    if not containers:
        return
    known = _containers(list(containers.values()))
    _insert(connection, "containers", known, named=False)
    connection.register("numbered", known)
    usage = [record for record in records if isinstance(record, UsageRecord)]
    if usage:
        _insert(connection, "usage", _usage(usage))
    sizes = [record for record in records if isinstance(record, SizeRecord)]
    if sizes:
        names = ("cpu_request", "cpu_limit", "memory_request", "memory_limit")
        _insert(connection, "sizes", {**_plain(sizes, ("time", "number", *names)), **_flags(sizes)})
    ooms = [record for record in records if isinstance(record, OomRecord)]
    if ooms:
        _insert(connection, "ooms", _plain(ooms, ("time", "number", "memory")))
    connection.unregister("numbered")


Columns: TypeAlias = dict[str, NDArray[Any]]
_AMOUNTS = frozenset(name for name, kind in COLUMNS.items() if kind == "bigint")


def _insert(connection: Connection, kind: str, columns: Columns, *, named: bool = True) -> None:
    """Rows of a kind; with `named` the containers' numbers are made the names that they stand for."""
    connection.register("given", columns)
    own = ", ".join(_selected(name) for name in columns if name != "number")
    who = ", c.namespace, c.pod, c.container, c.workload" if named else ""
    joined = "join numbered c on given.number = c.number" if named else ""
    connection.execute(f"insert into live by name select '{kind}' as kind, {own}{who} from given {joined}")
    connection.unregister("given")


def _selected(name: str) -> str:
    if name == "time":
        return "make_timestamp_ms(given.time) as time"
    if name == "throttled":
        return "nullif(given.throttled, -1) / 1000.0 as throttled"
    if name in _AMOUNTS:
        return f"nullif(given.{name}, -1) as {name}"
    return f"given.{name}"


def _containers(records: Sequence[ContainerRecord]) -> Columns:
    names = ("namespace", "pod", "container", "workload", "labels")
    return {**_plain(records, ("time", "number")), **_texts(records, names)}


def _usage(records: Sequence[UsageRecord]) -> Columns:
    def joined(name: str) -> NDArray[np.int64]:
        return np.concatenate([np.array(getattr(record, name), dtype=np.int64) for record in records])

    lengths = [len(record.numbers) for record in records]
    times = np.repeat(np.array([record.time for record in records], dtype=np.int64), lengths)
    own = {name: joined(name) for name in ("cpu", "memory", "throttled")}
    return {"number": joined("numbers"), "time": times - joined("ago"), **own, "samples": np.ones(len(times), np.int32)}


def _plain(records: Sequence[Record], names: Iterable[str]) -> Columns:
    return {name: np.array([getattr(record, name) for record in records], dtype=np.int64) for name in names}


def _texts(records: Sequence[Record], names: Iterable[str]) -> Columns:
    return {name: np.array([getattr(record, name) for record in records], dtype=object) for name in names}


def _flags(records: Sequence[SizeRecord]) -> Columns:
    return {"resized": np.array([record.resized for record in records], dtype=np.bool_)}
