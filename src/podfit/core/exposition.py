"""Prometheus' text format, as far as a kubelet writes it: only the families that are asked for are looked into.

A kubelet's /metrics/cadvisor has tens of thousands of lines, so a line is passed over by its first characters.
"""

import re
from collections.abc import Collection, Iterator, Mapping

import msgspec

_LABEL = re.compile(r'(?<![a-zA-Z0-9_])([a-zA-Z_][a-zA-Z0-9_]*+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


class Sample(msgspec.Struct, frozen=True):
    """`time` in milliseconds since 1970; 0 when none is said."""

    name: str
    labels: Mapping[str, str]
    value: float
    time: int = 0


def samples(text: str, names: Collection[str]) -> Iterator[Sample]:
    """Those of the named families. A line that cannot be read, as when an answer was cut, is no sample."""
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in names and (found := _sample(name, line)):
            yield found


def _sample(name: str, line: str) -> Sample | None:
    rest, labels = line[len(name) :], {}
    if rest.startswith("{"):
        inside, closed, rest = rest[1:].rpartition("}")
        if not closed:
            return None
        labels = {
            key: re.sub(r"\\.", lambda match: _ESCAPES.get(match[0], match[0]), text)
            for key, text in _LABEL.findall(inside)
        }
    value, _, time = rest.strip().partition(" ")
    try:
        return Sample(name, labels, float(value), int(time or 0))
    except ValueError:
        return None
