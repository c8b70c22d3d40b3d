"""Prometheus' text format with a time on each sample, which a client library's registry does not give.

# HELP name text
# TYPE name gauge
name{label="value"} 1 1795215824619
"""

from collections.abc import Iterable, Mapping

import msgspec

NO_LABELS: Mapping[str, str] = {}


class Sample(msgspec.Struct, frozen=True):
    """`time` in milliseconds since 1970; 0 = none is said."""

    value: float
    labels: Mapping[str, str]
    time: int = 0


class Family(msgspec.Struct, frozen=True):
    name: str
    type: str
    text: str
    samples: tuple[Sample, ...]


def exposition(families: Iterable[Family]) -> bytes:
    """Those that have samples, by name."""
    shown = sorted((family for family in families if family.samples), key=lambda family: family.name)
    return "".join(line for family in shown for line in _lines(family)).encode()


def _lines(family: Family) -> Iterable[str]:
    yield f"# HELP {family.name} {family.text}\n# TYPE {family.name} {family.type}\n"
    for row in sorted(family.samples, key=lambda sample: sorted(sample.labels.items())):
        labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in sorted(row.labels.items()))
        time = f" {row.time}" if row.time else ""
        yield f"{family.name}{f'{{{labels}}}' if labels else ''} {_number(row.value)}{time}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
