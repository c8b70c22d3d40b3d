"""Parses Prometheus' text format, only for the metric families that are asked for.

A kubelet's /metrics/cadvisor has tens of thousands of lines, so a line is passed over by its first characters; the rest
is `prometheus_client`'s to read.
"""

from collections.abc import Collection, Iterator, Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families


class Sample(msgspec.Struct, frozen=True):
    """`time` in milliseconds since 1970; 0 when none is said."""

    name: str
    labels: Mapping[str, str]
    value: float
    time: int = 0


def samples(text: str, names: Collection[str]) -> Iterator[Sample]:
    """Those of the named families. A line that cannot be read, as when an answer was cut, is no sample."""
    for line in text.splitlines():
        if line.partition("{")[0].partition(" ")[0] in names:
            yield from _read(line)


def _read(line: str) -> list[Sample]:
    try:
        families = list(text_string_to_metric_families(f"{line}\n"))
    except (ValueError, IndexError):  # what the parser raises for half a line
        return []
    return [
        Sample(sample.name, sample.labels, float(sample.value), round(1000 * float(sample.timestamp or 0)))
        for family in families
        for sample in family.samples
    ]
