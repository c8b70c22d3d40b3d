"""The only module that prints.

Facts go to stdout, one line each, so they can be piped and pasted; errors and progress go to stderr. An error has its
cause, the evidence and a command that helps.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podfit.cluster.errors import ClusterError

LABEL_WIDTH = 10


def line(text: str = "") -> None:
    """A line on stdout. A reader that has left (`podfit up | head -3`) is no reason to stop what is being told about.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fact(label: str, text: str) -> None:
    """`  label     text`, one fact."""
    line(f"  {label:<{LABEL_WIDTH}}{text}")


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def error(message: str, *, evidence: Iterable[str] = (), fix: Iterable[str] = ()) -> None:
    print(f"error: {message}", file=sys.stderr)
    for each in (*evidence, *fix):
        print(f"  {each}", file=sys.stderr)
    sys.stderr.flush()


def cluster_error(failure: "ClusterError") -> None:
    error(failure.message, evidence=failure.evidence, fix=failure.fix)


def document(value: Any, form: str) -> None:
    """A whole answer as `json` or `yaml`."""
    import msgspec

    plain = msgspec.to_builtins(value)
    if form == "yaml":
        import yaml

        print(yaml.safe_dump(plain, sort_keys=False), end="", flush=True)
    else:
        print(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode(), flush=True)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "") -> None:
    """Left-aligned columns, three spaces apart."""
    cells = [header, *rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(header))]
    for row in cells:
        text = "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        line((indent + text).rstrip())


def mapping(values: Mapping[str, str]) -> None:
    for label, text in values.items():
        fact(label, text)


def duration(seconds: int) -> str:
    """`14m`, `2h5m`: two units at most."""
    parts = zip("dhms", (seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60), strict=True)
    shown = [f"{amount}{unit}" for unit, amount in parts if amount]
    return "".join(shown[:2]) or "0s"
