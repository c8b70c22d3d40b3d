"""docs/conformance.md: each row of docs/checklist.toml beside the tests that show it and how they ended.

A test names its rows with `@pytest.mark.row("R-131")`. A run of them all with `--conformance FILE` writes the page;
`--rows FILE` writes what a part of the run showed (the guest's), and `--rows-from FILE` counts it in.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
CHECKLIST = TESTS.parent / "docs" / "checklist.toml"
WORST_FIRST = ("failed", "skipped", "passed")
SHOWN_TESTS = 3
ID = re.compile(r"[RHV]-\d+")


@dataclass(frozen=True)
class Section:
    title: str
    rows: dict[str, str]


@dataclass(frozen=True)
class Checklist:
    sections: tuple[Section, ...]
    not_shown: dict[str, str]

    @staticmethod
    def load() -> "Checklist":
        found = tomllib.loads(CHECKLIST.read_text())
        sections = tuple(Section(section["title"], section["rows"]) for section in found["section"])
        return Checklist(sections, found["not-shown"])

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(row for section in self.sections for row in section.rows)


@dataclass
class Shown:
    """Which test showed which row, and how it ended: a test of many cases ends as its worst."""

    rows: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, rows: Iterable[str], test: str, outcome: str) -> None:
        for row in rows:
            tests = self.rows.setdefault(row, {})
            tests[test] = min(outcome, tests.get(test, "passed"), key=WORST_FIRST.index)


def marked_rows() -> dict[str, list[str]]:
    """Row to the files that mark a test with it, without importing them."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for row in _marks(node):
                found.setdefault(row, []).append(str(path.relative_to(TESTS.parent)))
    return found


def _marks(node: ast.AST) -> Iterator[str]:
    """The ids in a call of `pytest.mark.row`, or of a helper `row` that makes a marked case."""
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "row":
        texts = (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
        yield from (text for text in texts if ID.fullmatch(text))


class Recorder:
    """Notes the outcome of each marked test of this run."""

    def __init__(self) -> None:
        self.shown = Shown()
        self._rows: dict[str, tuple[str, ...]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self._rows[item.nodeid] = tuple(row for mark in item.iter_markers("row") for row in mark.args)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.shown.add(self._rows.get(report.nodeid, ()), report.nodeid.partition("[")[0], report.outcome)


def page(checklist: Checklist, shown: Shown, today: str) -> str:
    lines, good = [], 0
    for section in checklist.sections:
        lines += ["", f"## {section.title}", "", "| row | behaviour | test | result |", "|---|---|---|---|"]
        for row, behaviour in section.rows.items():
            tests = shown.rows.get(row, {})
            result = _result(row, checklist, tests)
            good += result == "passed"
            lines.append(f"| {row} | {behaviour} | {_named(tests)} | {result} |")
    return "\n".join(
        [
            "# Conformance",
            "",
            "Written by `make conformance` from [checklist.toml](checklist.toml) and the tests marked with a row.",
            "",
            f"Last run: {today}; {good} of {len(checklist.ids)} rows shown.",
            *lines,
            "",
        ]
    )


def _result(row: str, checklist: Checklist, tests: dict[str, str]) -> str:
    if tests:
        return min(tests.values(), key=WORST_FIRST.index)
    reason = checklist.not_shown.get(row)
    return f"not shown: {reason}" if reason else "NOT SHOWN"


def _named(tests: dict[str, str]) -> str:
    names = [f"`{name.removeprefix('tests/')}`" for name in sorted(tests)]
    more = f" and {len(names) - SHOWN_TESTS} more" if len(names) > SHOWN_TESTS else ""
    return "<br>".join(names[:SHOWN_TESTS]) + more


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("podfit")
    group.addoption("--conformance", type=Path, help="write docs/conformance.md as this run showed it")
    group.addoption("--rows", type=Path, help="write which rows this run showed, as JSON")
    group.addoption("--rows-from", type=Path, action="append", default=[], help="count in what --rows wrote elsewhere")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(), "podfit-rows")


def pytest_sessionfinish(session: pytest.Session) -> None:
    recorder = session.config.pluginmanager.get_plugin("podfit-rows")
    assert isinstance(recorder, Recorder)
    shown = recorder.shown
    for path in session.config.option.rows_from:
        for row, tests in json.loads(path.read_text()).items() if path.exists() else ():
            for test, outcome in tests.items():
                shown.add((row,), test, outcome)
    if session.config.option.rows:
        session.config.option.rows.write_text(json.dumps(shown.rows, indent=1))
    if session.config.option.conformance:
        session.config.option.conformance.write_text(page(Checklist.load(), shown, f"{datetime.now(UTC):%Y-%m-%d}"))
