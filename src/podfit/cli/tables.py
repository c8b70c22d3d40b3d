"""Layout of tables and sentences for a terminal's width. Pure; `render` prints the result.

A table that is too wide gets its last column wrapped by words, when there is room for it, and else becomes one record
of `HEADER  value` lines a row, so that nothing is cut and no word is broken. Width 0 is a pipe: nothing is folded.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

GAP = "   "
LEAST = 20
"""A column of prose that is narrower reads worse than a record."""
BODY = "  "


class Cell(NamedTuple):
    """A text, and the tone that it is shown in (`render.TONES`); no tone is plain."""

    text: str
    tone: str = ""


Row = Sequence[str | Cell]
Span = list[Cell]
"""The pieces of one line."""


def laid_out(header: Sequence[str], rows: Sequence[Row], *, width: int, keys: int = 1) -> Iterator[Span]:
    """The lines of a table. The first `keys` columns are what a row is called, where it becomes a record."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[index].text) for row in cells) for index in range(len(header))]
    before = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
    if not width or before + widths[-1] <= width:
        yield from (_joined(row, widths) for row in cells)
    elif width - before >= max(LEAST, len(header[-1])) and len(header) > 1:
        for row in cells:
            yield from _wrapped_row(row, widths[:-1], width - before)
    else:
        for row in cells[1:]:
            yield from _record(header, row, width=width, keys=keys)


def folded(text: str, *, width: int, hanging: str = "") -> list[str]:
    """A sentence in lines that end with a word. `hanging` is put before all lines but the first."""
    if not width or len(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    return wrap(
        text.strip(),
        max(width, LEAST),
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [text]


def _joined(row: Sequence[Cell], widths: Sequence[int]) -> Span:
    """The cells of a line, each but the last filled up to its column."""
    line = []
    for cell, width in zip(row[:-1], widths, strict=False):
        line += [cell, Cell(" " * (width - len(cell.text)) + GAP)]
    return [*line, row[-1]]


def _wrapped_row(row: Sequence[Cell], widths: Sequence[int], room: int) -> Iterator[Span]:
    first, *rest = folded(row[-1].text, width=room)
    tone = row[-1].tone
    yield _joined([*row[:-1], Cell(first, tone)], widths)
    indent = Cell(" " * (sum(widths) + len(GAP) * len(widths)))
    yield from ([indent, Cell(line, tone)] for line in rest)


def _record(header: Sequence[str], row: Sequence[Cell], *, width: int, keys: int) -> Iterator[Span]:
    title: Span = []
    for cell in row[:keys]:
        title += [Cell("  "), cell] if title else [cell]
    yield title
    label = max(map(len, header[keys:]), default=0)
    for name, cell in zip(header[keys:], row[keys:], strict=True):
        if cell.text in ("", "-"):
            continue
        first, *rest = folded(cell.text, width=max(width - len(BODY) - label - 2, LEAST))
        yield [Cell(f"{BODY}{name.lower():<{label}}  "), Cell(first, cell.tone)]
        yield from ([Cell(" " * (len(BODY) + label + 2)), Cell(line, cell.tone)] for line in rest)
