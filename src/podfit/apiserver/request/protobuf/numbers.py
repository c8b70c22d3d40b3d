"""The field numbers of `numbers.txt`, by section and message."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TypeAlias

Numbers: TypeAlias = Mapping[str, int]


@cache
def published() -> Mapping[tuple[str, str], Numbers]:
    """Field numbers by name in JSON, by section and message."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    section = ""
    for line in _lines(files(__package__).joinpath("numbers.txt").read_text()):
        if line.startswith("["):
            section = line.strip("[]")
            continue
        name, _, fields = line.partition(":")
        pairs = (part.rpartition("=") for part in fields.split())
        found[section, name] = {field: int(number) for field, _, number in pairs}
    return found


def _lines(text: str) -> Iterator[str]:
    """Without comments and empty lines, an entry with the lines that continue it as one."""
    entry = ""
    for line in text.splitlines():
        if line.startswith(" "):
            entry += line
            continue
        if entry:
            yield entry
        entry = "" if line.startswith("#") else line
    if entry:
        yield entry
