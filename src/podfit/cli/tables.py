"""Layout of tables and sentences for a terminal's width. Pure; `render` prints the result.

Where a table is wider than the terminal, the first of these that is enough is taken:

    pods of one workload whose rows are equal become one row: `web-7d4b9-* (3 pods alike)`
    columns are left out, what matters least first (`LESS_FIRST`), empty ones before them; the caller says which
    the last column is wrapped by words, or stands below its row
    each row becomes a record of `HEADER  value` lines, with all its columns

So nothing is cut and no word is broken. `-o wide` asks for all rows and columns, and width 0 is a pipe: there nothing
is folded or left out.
"""

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

GAP = "   "
LEAST, COMFORTABLE = 20, 32
"""A column of prose that is narrower than the first reads worse than a record. Columns are left out for the second."""
BODY = "  "
POD = "POD"
LESS_FIRST = (
    {"QOS"},
    {"NODE"},
    {"FROM"},
    {"VPA"},
    {"CPU VPA", "MEM VPA"},
    {"CPU LIMIT", "MEM LIMIT"},
    {"PODS"},
    {"THROTTLED"},
    {"SAVES"},
    {"MEM REQUEST", "CPU REQUEST"},
)
"""Headers of columns that a narrow terminal can do without, in the order in which they go."""
_GENERATED = re.compile(r"(?P<stem>.+-)(?:[bcdfghjklmnpqrstvwxz2456789]{5}|\d+)")
"""What a workload's controller puts behind its own name: five letters, or the ordinal of a StatefulSet."""


class Cell(NamedTuple):
    """A text, and the tone that it is shown in (`render.TONES`); no tone is plain."""

    text: str
    tone: str = ""


Row = Sequence[str | Cell]
Span = list[Cell]
"""The pieces of one line."""
Cells = list[list[Cell]]
"""A header and its rows."""


class Layout(NamedTuple):
    """`left_out` are the headers of columns that have values and are not shown."""

    lines: list[Span]
    left_out: tuple[str, ...] = ()


def laid_out(header: Sequence[str], rows: Sequence[Row], *, width: int, keys: int = 1, whole: bool = False) -> Layout:
    """The lines of a table. The first `keys` columns are what a row is called, where it becomes a record; `whole` keeps
    every row and column.
    """
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in (header, *rows)]
    if not width or sum(_line(cells)) <= width:
        return Layout([_joined(row, _widths(cells)) for row in cells])
    folded_rows = cells if whole else [cells[0], *_alike(cells)]
    choices = [(cells, ())] if whole else [*_narrower(folded_rows), *_narrower(cells)]
    for least in (COMFORTABLE, LEAST, 0):
        for chosen, left_out in choices:
            if lines := _table(chosen, width, least):
                return Layout(lines, left_out)
    return Layout([line for row in folded_rows[1:] for line in _record(header, row, width=width, keys=keys)])


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


def _widths(cells: Cells) -> list[int]:
    return [max(len(row[index].text) for row in cells) for index in range(len(cells[0]))]


def _line(cells: Cells) -> tuple[int, int]:
    """Columns that the table takes before its last one, and those of the last."""
    *before, last = _widths(cells)
    return sum(before) + len(GAP) * len(before), last


def _alike(cells: Cells) -> Cells:
    """The rows, those of pods of one workload that differ in nothing but the name as one, where the first is."""
    header, *rows = cells
    names = [cell.text for cell in header]
    if POD not in names:
        return rows
    at = names.index(POD)
    groups: dict[tuple[str, tuple[Cell, ...]], Cells] = {}
    for row in rows:
        made = _GENERATED.fullmatch(row[at].text)
        groups.setdefault((made["stem"] if made else row[at].text, (*row[:at], *row[at + 1 :])), []).append(row)
    return [_one_of(group, at, stem) for (stem, _), group in groups.items()]


def _one_of(group: Cells, at: int, stem: str) -> list[Cell]:
    pods = len({row[at].text for row in group})
    first = group[0]
    return first if pods == 1 else [*first[:at], Cell(f"{stem}* ({pods} pods alike)", first[at].tone), *first[at + 1 :]]


def _narrower(cells: Cells) -> Iterator[tuple[Cells, tuple[str, ...]]]:
    """The table with ever fewer columns, and those that are missing though they have values."""
    header = [cell.text for cell in cells[0]]
    empty = {at for at in range(1, len(header)) if all(row[at].text in ("", "-") for row in cells[1:])}
    gone = set[int]()
    yield cells, ()
    for leaving in (empty, *({at for at, name in enumerate(header) if name in names} for names in LESS_FIRST)):
        if leaving <= gone:
            continue
        gone |= leaving
        kept = [[cell for at, cell in enumerate(row) if at not in gone] for row in cells]
        yield kept, tuple(name for at, name in enumerate(header) if at in gone - empty)


def _table(cells: Cells, width: int, least: int) -> list[Span]:
    """The lines, the last column wrapped where it has `least` letters; with 0 below its row. None when too wide."""
    before, last = _line(cells)
    widths, room = _widths(cells), width - before
    if last <= room:
        return [_joined(row, widths) for row in cells]
    if last <= LEAST or len(widths) == 1:
        return []
    if least and room >= max(least, len(cells[0][-1].text)):
        return [line for row in cells for line in _wrapped_row(row, widths[:-1], room)]
    if least or before - len(GAP) > width:
        return []
    return [line for row in cells for line in _prose_below(row, widths[:-1], width, is_header=row is cells[0])]


def _prose_below(row: Sequence[Cell], widths: Sequence[int], width: int, *, is_header: bool) -> Iterator[Span]:
    yield _joined(row[:-1], widths)
    if is_header or row[-1].text in ("", "-"):
        return
    yield from (
        [Cell(BODY * 2), Cell(line, row[-1].tone)] for line in folded(row[-1].text, width=width - 2 * len(BODY))
    )


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
