"""`podfit history`: what containers used, as the recommender recorded it, and questions in SQL about it.

It reads files of this machine, so it answers whoever may read the data directory, also while nothing runs.
"""

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import App, Parameter

from podfit.answers.facts.readable import readable
from podfit.answers.facts.target import POD, WORKLOADS, Target, parse_target
from podfit.cli import exits, render
from podfit.cli.app import VERBS
from podfit.cli.cluster_questions import Name
from podfit.cli.examples import epilogue
from podfit.cli.questions.sheets import csv_sheet
from podfit.core.durations import parse_duration
from podfit.decide.machine import HISTORY
from podfit.net.system import SystemClock
from podfit.process.data.data_dir import DataDir, default_data_dir
from podfit.process.errors import MachineError, UsageError, reason

if TYPE_CHECKING:  # they load the library
    from podfit.vpa.history.own.queries import Answer
    from podfit.vpa.history.own.questions import ContainerHistory, Mark, OwnHistory, Subject, Told

DAY = 86_400.0
LONGEST = 3650 * DAY
DataOption: TypeAlias = Annotated[
    Path | None, Parameter(help=f"Data directory of `podfit up`. [default: {default_data_dir()}]")
]
DirectoryOption: TypeAlias = Annotated[
    Path | None, Parameter(help="Directory of a `podfit vpa recommender`, instead of a data directory.")
]


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class QueryForm(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


program = App(name="history", help=VERBS["history"][1], help_epilogue=epilogue("history"))


@program.default
def history(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, or another workload.")],
    name: Name = "",
    /,
    *,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], help="Where it is.")] = "default",
    since: Annotated[str, Parameter(help="How far back: 90m, 24h, 7d.")] = "7d",
    output: Annotated[
        Form, Parameter(name=["--output", "-o"], help="table, json, csv (each sample), or parquet (each sample).")
    ] = Form.TABLE,
    data: DataOption = None,
    history_dir: DirectoryOption = None,
) -> int:
    """Show what containers used, step by step, with their resizes, OOMs and recommendations.

    From the history that `podfit up`, or `podfit vpa recommender --history-dir`, keeps. Nothing is asked of a cluster.
    """
    about = parse_target(target, POD, *WORKLOADS, name=name)
    length, root = _length(since), directory_of(data, history_dir)
    if output is Form.PARQUET and sys.stdout.isatty():
        raise UsageError("-o parquet: it is no text; write it to a file:  podfit history ... -o parquet > FILE")
    kept, asked = _open(root), _subject(about, namespace, length)
    try:
        if output is Form.PARQUET:
            sys.stdout.buffer.write(kept.parquet(asked))
            sys.stdout.buffer.flush()
            return exits.DONE
        if output is Form.CSV:
            return _sheet(kept, asked)
        told = kept.tell(asked)
    except PermissionError as error:
        raise _unreadable(root, error) from error
    for file in told.damaged:
        render.progress(f"note: left out {file}")
    if output is Form.JSON:
        render.document({"containers": told.containers, "damaged": told.damaged}, "json")
    elif told.containers:
        _show(told, asked)
    else:
        render.line(f"nothing was recorded of {about} in namespace {namespace} in the last {since}")
    return exits.DONE if told.containers else exits.REFUSED


@program.command(help_epilogue=epilogue("history query"))
def query(
    sql: Annotated[str, Parameter(help="One SELECT over usage, sizes, ooms, recommendations, containers.")],
    /,
    *,
    rows: Annotated[int, Parameter(help="At most so many are shown.")] = 10_000,
    timeout: Annotated[str, Parameter(help="How long it may take.")] = "30s",
    memory: Annotated[int, Parameter(help="MiB of memory that it may take.")] = 512,
    output: Annotated[QueryForm, Parameter(name=["--output", "-o"], help="table, json or csv.")] = QueryForm.TABLE,
    data: DataOption = None,
    history_dir: DirectoryOption = None,
) -> int:
    """Ask the history in SQL (DuckDB's). It only reads: no files, no extensions, no network, no settings.

    Times are UTC, CPU is millicores, memory bytes (docs/history.md).
    """
    root = directory_of(data, history_dir)
    _check_installed()
    from podfit.vpa.history.own.queries import MOST_MEMORY, MOST_ROWS, MOST_SECONDS, Asked, ask

    seconds = _duration(timeout, "--timeout")
    for flag, value, most in (("--rows", rows, MOST_ROWS), ("--memory", memory, MOST_MEMORY)):
        if not 1 <= value <= most:
            raise UsageError(f"{flag} {value}: it has to be from 1 to {most}")
    if seconds > MOST_SECONDS:
        raise UsageError(f"--timeout {timeout}: it has to be at most {MOST_SECONDS:g} s")
    asked = Asked(directory=str(root), sql=sql, rows=rows, seconds=seconds, memory=memory)
    answer = asyncio.run(ask(asked, SystemClock(), render.progress))
    for file in answer.damaged:
        render.progress(f"note: left out {file}")
    if answer.refused or answer.failed:
        fix = ("see what there is:  podfit history query 'describe usage'",) if answer.refused else ()
        render.error(answer.refused or answer.failed, fix=fix)
        return exits.REFUSED
    _print(answer, output)
    if answer.more:
        render.progress(f"note: there are more than {rows} rows; select less, or more with --rows")
    return exits.DONE


def _print(answer: "Answer", output: QueryForm) -> None:
    if output is QueryForm.JSON:
        render.document([dict(zip(answer.columns, row, strict=True)) for row in answer.rows], "json")
    elif output is QueryForm.CSV:
        csv_sheet(answer.columns, ([_cell(value) for value in row] for row in answer.rows))
    elif answer.columns:
        render.table(answer.columns, [[_text(value) for value in row] for row in answer.rows])


def _cell(value: Any) -> str | int | float | None:
    return str(value) if isinstance(value, bool) or not isinstance(value, int | float | str | None) else value


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


# ---------------------------------------------------------------- where it is


def directory_of(data: Path | None, history_dir: Path | None) -> Path:
    """Raises UsageError, MachineError."""
    if data is not None and history_dir is not None:
        raise UsageError("--data and --history-dir: give one of them")
    root = history_dir.absolute() if history_dir is not None else DataDir.at(data).history
    try:
        os.scandir(root).close()
    except FileNotFoundError:
        kept = "`podfit up` keeps one from its first VPA on, `podfit vpa recommender` with --history-dir"
        fix = ("name another data directory with --data",)
        raise MachineError(f"there is no history in {root}", evidence=(kept,), fix=fix) from None
    except OSError as error:
        raise _unreadable(root, error) from error
    return root


def _unreadable(root: Path, error: OSError) -> MachineError:
    owner = "its owner may read it, and root"
    return MachineError(f"{root} cannot be read ({reason(error)})", evidence=(owner,))


def _check_installed() -> None:
    """Raises MachineError."""
    if find_spec("duckdb") is None:
        raise MachineError("podfit was installed without the extra history", fix=(HISTORY,))


def readable_history(data: Path | None, history_dir: Path | None) -> Path:
    """Where it is, for who reads it whole. Raises UsageError, MachineError."""
    _check_installed()
    return directory_of(data, history_dir)


def _open(root: Path) -> "OwnHistory":
    _check_installed()
    from podfit.vpa.history.own.files import HistoryDirectory
    from podfit.vpa.history.own.questions import OwnHistory

    return OwnHistory(HistoryDirectory(root))


def _subject(about: Target, namespace: str, length: float) -> "Subject":
    from podfit.vpa.history.own.questions import Subject

    now = SystemClock().now().timestamp()
    return Subject(namespace, about.kind.kind, about.name, now - length, now)


def _duration(text: str, flag: str) -> float:
    """More than 0, also in days. Raises UsageError."""
    days = text.removesuffix("d")
    try:
        seconds = int(days) * DAY if text.endswith("d") and days.isascii() and days.isdigit() else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None
    if seconds <= 0:
        raise UsageError(f"{flag} {text}: it has to be more than 0")
    return seconds


def _length(since: str) -> float:
    seconds = _duration(since, "--since")
    if seconds > LONGEST:
        raise UsageError(f"--since {since}: it has to be at most 3650d")
    return seconds


# ---------------------------------------------------------------- how it looks

BARS = "▁▂▃▄▅▆▇█"
LETTERS = {"recommended": "r", "resized": "R", "out of memory": "O"}
"""The later count more where two happened in one step."""
SHORT = {"recommended": "target", "resized": "resized", "out of memory": "oom"}
SHOWN = 20
"""Marks that are listed below a container; the last ones."""


def sparkline(values: Sequence[int | float | None]) -> str:
    """A bar for each value, the largest full; a dot where there is none."""
    most = max((value for value in values if value is not None), default=0) or 1
    return "".join("·" if value is None else BARS[min(int(8 * value / most), 7)] for value in values)


def _sheet(kept: "OwnHistory", asked: "Subject") -> int:
    from podfit.vpa.history.own.questions import MOST_ROWS, ROWS

    found, more = kept.rows(asked)
    csv_sheet(ROWS, ([_cell(value) for value in row] for row in found))
    if more:
        render.progress(f"note: there are more than {MOST_ROWS} rows; ask for less with --since, or for -o parquet")
    return exits.DONE if found else exits.REFUSED


def _show(told: "Told", asked: "Subject") -> None:
    for place, container in enumerate(told.containers):
        if place:
            render.line()
        _show_container(container)
    if told.more:
        render.progress(f"note: there are more than {len(told.containers)} containers; ask for a pod, or for -o csv")


def _show_container(of: "ContainerHistory") -> None:
    points = of.points
    step = render.duration(of.step)
    begin = f"since {points[0].time}" if points else "no usage"
    render.styled(f"pod {of.pod}", f"container {of.container}", of.workload, then=f"{begin}, a column is {step}")
    for label, peaks, means, shown in (
        ("cpu", [point.cpu_peak for point in points], [point.cpu for point in points], lambda amount: f"{amount}m"),
        ("memory", [point.memory_peak for point in points], [point.memory for point in points], readable),
    ):
        known, middles = [peak for peak in peaks if peak is not None], [mean for mean in means if mean is not None]
        if known and middles:
            facts = (("last", middles[-1]), ("mean", sum(middles) // len(middles)), ("peak", max(known)))
            said = ", ".join(f"{word} {shown(amount)}" for word, amount in facts)
            render.line(f"  {label:<10}{sparkline(peaks)}  {said}")
    shares = [point.throttled for point in points]
    if any(shares):
        render.line(f"  {'throttled':<10}{sparkline(shares)}  peak {max(share or 0.0 for share in shares):.0%}")
    if of.marks:
        render.line(f"  {'marks':<10}{_marks(of)}  O out of memory, R resized, r recommended")
    for mark in of.marks[-SHOWN:]:
        render.fact(SHORT[mark.what], f"{mark.time}  {_said(mark)}")
    if len(of.marks) > SHOWN:
        render.fact("earlier", f"{len(of.marks) - SHOWN} more (-o json)")


def _marks(of: "ContainerHistory") -> str:
    letters = [" "] * len(of.points)
    order = {letter: place for place, letter in enumerate((" ", *LETTERS.values()))}
    for mark in of.marks:
        if 0 <= mark.step < len(letters):
            letters[mark.step] = max(letters[mark.step], LETTERS[mark.what], key=lambda letter: order[letter])
    return "".join(letters)


def _said(mark: "Mark") -> str:
    """What holds since then."""
    if mark.what == "out of memory":
        return f"with {readable(mark.memory)}" if mark.memory else "without a request"
    if mark.what == "recommended":
        return ", ".join(_amounts(("cpu", mark.cpu, None), ("memory", mark.memory, None)))
    sizes = ("cpu", mark.cpu_request, mark.cpu_limit), ("memory", mark.memory_request, mark.memory_limit)
    return ", ".join(_amounts(*sizes)) or "without requests and limits"


def _amounts(*sizes: tuple[str, int | None, int | None]) -> Iterator[str]:
    """`cpu 100m`, `memory 64Mi:128Mi` of request and limit."""
    for resource, request, limit in sizes:
        shown = [
            "" if amount is None else f"{amount}m" if resource == "cpu" else readable(amount)
            for amount in (request, limit)
        ]
        if any(shown):
            yield f"{resource} {':'.join(shown).rstrip(':')}"
