"""Terminal output: the only module that prints, with colours and folding for terminals.

Facts go to stdout, one line each, so they can be piped and pasted; errors and progress go to stderr. An error has its
cause, the evidence and a command that helps. In a pipe nothing is coloured or folded.

Names and free text come from a cluster, where a container may write what it likes: a termination message, an event, a
label. So all text goes through `shown`, and the only control codes that are printed are the line ends and colours made
here.

    NO_COLOR        set and not empty: never colours
    FORCE_COLOR     set and neither empty nor 0: colours in a pipe too
    TERM=dumb       no colours
    COLUMNS         the width of a terminal, where the terminal itself is not to be asked
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from podfit.cli.tables import LEAST, Cell, Row, Span, folded, laid_out

if TYPE_CHECKING:
    from podfit.process.errors import ClusterError

LABEL_WIDTH, HANGING = 10, "     "
GOOD, WAITS, BAD = "good", "waits", "bad"
TONES = {GOOD: "32", WAITS: "33", BAD: "31"}
WORDS = {
    "fits": GOOD,
    "done": GOOD,
    "accepted": GOOD,
    "settled": GOOD,
    "unchanged": "",
    "ended": "",
    "deferred": WAITS,
    "waits": WAITS,
    "in progress": WAITS,
    "not seen yet": WAITS,
    "not known": WAITS,
    "not scheduled": WAITS,
    "infeasible": BAD,
    "refused": BAD,
    "error": BAD,
    "crash": BAD,
    "unschedulable": BAD,
    "failing": BAD,
    "failed": BAD,
    "protected": BAD,
}
"""Verdicts, states of resizes and what became of them."""


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""C0 and C1 codes, which move the cursor and set titles; what turns text round or ends a line; surrogates."""


def shown(text: str) -> str:
    """The text with what would act on a terminal written as an escape: `\\x1b`, `\\r`, `\\u202e`."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def judged(word: str) -> Cell:
    """A verdict or state in the colour that it has everywhere."""
    return Cell(word, WORDS.get(word, ""))


def toned(text: str, tone: str) -> Cell:
    return Cell(text, tone)


def width_of(stream: TextIO) -> int:
    """Columns of the terminal behind it; 0 in a pipe. (`shutil` knows this too, and takes 8 ms to load.)"""
    if not stream.isatty():
        return 0
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isascii() and given.isdigit() else os.get_terminal_size(stream.fileno()).columns


def coloured(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


_LEFT: list[TextIO] = []
"""Streams whose reader has left."""


def line(text: str = "") -> None:
    """A line on stdout, never folded, such as a command to copy."""
    _put(f"{shown(text)}\n", sys.stdout)


def block(text: str) -> None:
    """Several lines on stdout, such as a file."""
    for text_line in text.split("\n"):
        line(text_line)


def reader_left() -> bool:
    """Whether nobody reads stdout any more: a reason to end what would go on for ever."""
    return sys.stdout in _LEFT


def _put(text: str, stream: TextIO) -> None:
    """A reader that has left (`podfit up | head -3`) is no reason to stop what is being told about.

    Raises OSError with the stream's name when it cannot be written to, as on a full disk.
    """
    try:
        print(text, end="", file=stream, flush=True)
    except BrokenPipeError:
        to_nobody(stream)
    except OSError as error:
        to_nobody(stream)
        raise OSError(error.errno, error.strerror, stream.name) from error


def to_nobody(stream: TextIO) -> None:
    """Nothing more is written: what the stream still holds would fail again when the process ends."""
    _LEFT.append(stream)
    nobody = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nobody, stream.fileno())
    os.close(nobody)


def say(text: str) -> None:
    """A sentence on stdout, folded by words."""
    for folded_line in folded(shown(text), width=width_of(sys.stdout), hanging="  "):
        line(folded_line)


def styled(*cells: str | Cell, then: str = "") -> None:
    """One line of pieces, two blanks apart and coloured where they have a tone, and a sentence behind a colon.

    In a terminal that is too narrow lines end with a piece, and the sentence has lines of its own.
    """
    width, paint = width_of(sys.stdout), coloured(sys.stdout)
    then, spans = shown(then), list[Span]([[]])
    for cell in map(_safe, cells):
        taken = sum(len(word.text) for word in spans[-1])
        if width and spans[-1] and taken + 2 + len(cell.text) > width:
            spans.append([Cell(HANGING)])
            taken = 0
        spans[-1] += [Cell("  "), cell] if taken else [cell]
    if then and (not width or sum(len(word.text) for word in spans[-1]) + 2 + len(then) <= width):
        spans[-1].append(Cell(f": {then}"))
        then = ""
    for span in spans:
        _put_line(span, paint)
    for folded_line in folded(HANGING + then, width=width) if then else ():
        line(folded_line)


def fact(label: str, text: str) -> None:
    """`  label     text`, one fact; what is folded stands below the text."""
    entry(f"{label:<{LABEL_WIDTH - 1}} ", text, LABEL_WIDTH)


def entry(name: str, text: str, label: int) -> None:
    """`  name   text` of a list, the text folded below itself; below the name in a terminal without room beside it."""
    width = width_of(sys.stdout)
    if width and width - label - 2 < LEAST:
        line(f"  {name}".rstrip())
        for below in folded(shown(text), width=width - len(HANGING)):
            line(HANGING + below)
        return
    first, *rest = folded(shown(text), width=max(width - label - 2, 1) if width else 0)
    line(f"  {name:<{label}}{first}")
    for following in rest:
        line(" " * (label + 2) + following)


def progress(text: str) -> None:
    """On stderr: what is not the answer itself."""
    for line in folded(shown(text), width=width_of(sys.stderr), hanging="  "):
        _put(f"{line}\n", sys.stderr)


def advice(text: str) -> None:
    """On stderr, never folded: it ends with a command to copy."""
    _put(f"{shown(text)}\n", sys.stderr)


def error(message: str, *, evidence: Iterable[str] = (), fix: Iterable[str] = ()) -> None:
    """The message and what is known of it, folded; commands that help as they are."""
    width = width_of(sys.stderr)
    first, *rest = folded(f"error: {shown(message)}", width=width, hanging="  ")
    label = _painted([Cell("error:", BAD)], coloured(sys.stderr))
    lines = [first.replace("error:", label, 1), *rest]
    for line in evidence:
        lines += folded(f"  {shown(line)}", width=width, hanging="  ")
    lines += (f"  {shown(line)}" for line in fix)
    _put("".join(f"{line}\n" for line in lines), sys.stderr)


def cluster_error(failure: "ClusterError") -> None:
    error(failure.message, evidence=failure.evidence, fix=failure.fix)


def document(value: Any, form: str) -> None:
    """A whole answer as `json` or `yaml`."""
    import msgspec

    plain = msgspec.to_builtins(value)
    if form == "yaml":
        import yaml

        _put(yaml.safe_dump(plain, sort_keys=False), sys.stdout)
    else:
        text = msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
        _put("\n".join(_CONTROL.sub(_in_json, part) for part in text.split("\n")) + "\n", sys.stdout)


def documents(values: Iterable[Any]) -> None:
    """Several answers as the documents of one YAML file."""
    import msgspec
    import yaml

    _put(yaml.safe_dump_all([msgspec.to_builtins(value) for value in values], sort_keys=False), sys.stdout)


def _in_json(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def table(
    header: Sequence[str],
    rows: Iterable[Row],
    *,
    indent: str = "",
    keys: int = 1,
    whole: bool = False,
    told: Sequence[str] = (),
) -> tuple[str, ...]:
    """Left-aligned columns, three spaces apart, laid out for the terminal (`tables`). `whole` is for -o wide.

    Says on stderr which columns are left out, and answers them; not when they are those that were `told` before.
    """
    width, paint = width_of(sys.stdout), coloured(sys.stdout)
    room = max(width - len(indent), 1) if width else 0
    safe = [[_safe(cell) for cell in row] for row in rows]
    layout = laid_out(header, safe, width=room, keys=keys, whole=whole)
    for span in layout.lines:
        _put_line([Cell(indent), *span], paint)
    if layout.left_out and layout.left_out != tuple(told):
        progress(f"left out in {width} columns: {', '.join(layout.left_out)}")
    return layout.left_out


def _safe(cell: str | Cell) -> Cell:
    return Cell(shown(cell)) if isinstance(cell, str) else Cell(shown(cell.text), cell.tone)


def _put_line(span: Span, paint: bool) -> None:
    """Writes a line of cells that are safe."""
    _put(f"{_painted(span, paint)}\n", sys.stdout)


def _painted(span: Span, paint: bool) -> str:
    """The text of a line without blanks at its end."""
    plain = "".join(cell.text for cell in span)
    if not paint:
        return plain.rstrip()
    text = "".join(f"\033[{TONES[cell.tone]}m{cell.text}\033[0m" if cell.tone else cell.text for cell in span)
    return text.rstrip()


def duration(seconds: int) -> str:
    """`14m`, `2h5m`: two units at most."""
    parts = zip("dhms", (seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60), strict=True)
    shown = [f"{amount}{unit}" for unit, amount in parts if amount]
    return "".join(shown[:2]) or "0s"
