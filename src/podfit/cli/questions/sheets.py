"""Answers as sheets for other programs: CSV for spreadsheets, Markdown for pull requests."""

import csv
import io
from collections.abc import Iterable, Sequence

from podfit.cli.render import block, shown

FORMULA = ("=", "+", "-", "@")
"""With these a spreadsheet takes a cell for a formula, which names in a cluster could be."""
Value = str | int | float | None


def csv_sheet(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
    """Print CSV as RFC 4180 has it; texts that begin as a formula have an apostrophe before them, numbers do not."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_plain(value) for value in row] for row in rows)
    block(text.getvalue().rstrip("\n"))


def markdown_sheet(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
    """Print a table of Markdown as GitHub has it; what would end a cell or be HTML is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    for line in lines:
        block(f"| {' | '.join(_escaped(value) for value in line)} |")


def _plain(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    text = shown(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _escaped(value: Value) -> str:
    text = "" if value is None else shown(str(value))
    for letter in ("\\", "|", "<", "`", "*", "_", "["):
        text = text.replace(letter, f"\\{letter}")
    return text
