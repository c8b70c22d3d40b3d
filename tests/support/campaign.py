"""The campaign's page writes itself: `pytest -m campaign --campaign docs/campaign.md`.

    def test_x(figure):             the first paragraph of the docstring says what the test does
        figure("rounds", 50)        what it says of its run

Rows of tests that were not part of the run stay as they are; text around the table is left alone.
"""

import os
import platform
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BEGIN, END = "<!-- the table is written by pytest --campaign -->", "<!-- end of the table -->"
HEADER = ("| test | what it does | result | figures |", "|---|---|---|---|")
WHAT, FIGURE = "campaign-what", "campaign-figure"


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        "--campaign", type=Path, metavar="PAGE", help="write the results of the campaign's tests into this page"
    )


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str, object], None]:
    """Say something about this run that the campaign's page is to show."""
    return lambda name, value: record_property(FIGURE, f"{name} {value}")


def describe(item: pytest.Item) -> None:
    """Have the report of a campaign test say what the test does."""
    if item.get_closest_marker("campaign"):
        item.user_properties.append((WHAT, _first_paragraph(getattr(item, "obj", None))))


class Page:
    """A plugin that collects results and writes them at the end, also through xdist."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, tuple[str, str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties: list[tuple[str, Any]] = report.user_properties
        what = next((value for name, value in properties if name == WHAT), None)
        if what is None or (report.when != "call" and report.passed):
            return
        figures = [str(value) for name, value in properties if name == FIGURE]
        result = f"{report.outcome} in {report.duration:.0f} s, {time.strftime('%Y-%m-%d')}"
        self._rows[report.nodeid] = what, result, ", ".join(figures)

    def pytest_sessionfinish(self) -> None:
        if not self._rows:
            return
        before, table, after = _split(self._path.read_text())
        rows = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}
        rows |= {name: f"| `{name}` | {' | '.join(map(_cell, row))} |" for name, row in self._rows.items()}
        lines = [BEGIN, f"Last run on {machine()}.", "", *HEADER, *(rows[name] for name in sorted(rows)), END]
        self._path.write_text(before + "\n".join(lines) + after)


def machine() -> str:
    version = subprocess.run(["containerd", "--version"], capture_output=True, text=True, check=False).stdout.split()
    containerd = f", containerd {version[2].removeprefix('v')}" if len(version) > 2 else ""
    load = f"load average {os.getloadavg()[0]:.1f}"
    return f"{os.cpu_count()} CPUs, Linux {platform.release()}{containerd}, Python {platform.python_version()}, {load}"


def _split(page: str) -> tuple[str, str, str]:
    before, mark, rest = page.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not mark or not end:
        raise pytest.UsageError(f"the page has no place for the table: {BEGIN} … {END}")
    return before, table, after


def _first_paragraph(function: object) -> str:
    text = (getattr(function, "__doc__", None) or "").strip().split("\n\n")[0]
    return re.sub(r"\s+", " ", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
