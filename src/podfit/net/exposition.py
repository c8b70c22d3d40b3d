"""Parses Prometheus' text format, only for the metric families that are asked for.

A kubelet's /metrics/cadvisor has tens of thousands of lines, so a line is passed over by its first characters; the rest
is `prometheus_client`'s to read, whose time grows with the square of a line's labels: lines are bounded.
"""

from collections.abc import Collection, Iterator, Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families

MOST_LINE = 4096
"""Characters of a line; with the longest names that Kubernetes allows one has about 1,500."""
_EXEMPLAR = " # "
PIECE = 32 * 1024
"""Characters that are read in one turn of an event loop: about 10 ms."""


class Sample(msgspec.Struct, frozen=True):
    """`time` in milliseconds since 1970; 0 when none is said."""

    name: str
    labels: Mapping[str, str]
    value: float
    time: int = 0


def pieces(text: str) -> Iterator[str]:
    """Whole lines, PIECE characters or a little more at once."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + PIECE)
        end = len(text) if end < 0 else end + 1
        yield text[start:end]
        start = end


def samples(text: str, names: Collection[str]) -> Iterator[Sample]:
    """Those of the named families. A line that cannot be read, as when an answer was cut, is no sample, nor is one of
    more than MOST_LINE characters."""
    known: dict[str, Mapping[str, str]] = {}
    for line in text.split("\n"):
        if len(line) <= MOST_LINE and line.partition("{")[0].partition(" ")[0] in names:
            yield from _read_again(line, known)


def _read_again(line: str, known: dict[str, Mapping[str, str]]) -> list[Sample]:
    """Several families tell of the same container, with the same labels, which take longest to read: `known` are those
    that were read, by their text."""
    head, _, numbers = line.rpartition("} ")
    name, brace, text = head.partition("{")
    if not brace or " " in name or _EXEMPLAR in line:
        return _read(line)
    if (labels := known.get(text)) is not None and len(parts := numbers.split()) in (1, 2):
        try:
            return [Sample(name, labels, float(parts[0]), round(float(parts[1])) if len(parts) > 1 else 0)]
        except (ValueError, OverflowError):
            return []
    found = _read(line)
    known.update((text, sample.labels) for sample in found if sample.name == name)
    return found


def _read(line: str) -> list[Sample]:
    try:
        families = list(text_string_to_metric_families(f"{line}\n"))
        return [
            Sample(sample.name, sample.labels, float(sample.value), round(1000 * float(sample.timestamp or 0)))
            for family in families
            for sample in family.samples
        ]
    except (ValueError, IndexError, OverflowError):  # what the parser raises for half a line, and floats for no number
        return []
