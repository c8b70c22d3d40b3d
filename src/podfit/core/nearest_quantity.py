"""Suggests the quantity that somebody who wrote `512MB`, `0,5` or `2 cores` may have meant."""

import re
import unicodedata

_WITH_UNIT = re.compile(r"(?P<number>[0-9]{1,18}(?:[.,][0-9]{1,9})?) ?(?P<unit>[A-Za-z]{0,12})")
_LETTERS = {"k": "k", "m": "M", "g": "G", "t": "T", "p": "P", "e": "E"}
_NAMES = {
    "kilobyte": "k",
    "megabyte": "m",
    "gigabyte": "g",
    "terabyte": "t",
    "meg": "m",
    "gig": "g",
    "kibibyte": "ki",
    "mebibyte": "mi",
    "gibibyte": "gi",
    "tebibyte": "ti",
}
_CPUS = ("cpu", "cpus", "core", "cores", "vcpu", "vcpus", "c")
_MILLI = ("milli", "millicpu", "millicpus", "millicore", "millicores", "mcpu", "mc")


def nearest(text: str, *, memory: bool) -> tuple[str, ...]:
    """Quantities to choose from; none when there is no telling. They need not be valid."""
    text = text.strip()[:64]
    text = _digit(text[:1]) + text[1:]
    found = _WITH_UNIT.fullmatch(text)
    if found is None:
        return ()
    number, unit = found["number"].replace(",", "."), found["unit"].lower()
    if not memory:
        return (f"{number}m",) if unit in _MILLI else (number,) if unit in ("", *_CPUS) else ()
    if unit in ("", "b", "byte", "bytes"):
        return (number,)
    unit = _NAMES.get(unit.removesuffix("s"), unit.removesuffix("b"))
    letter = _LETTERS.get(unit[:1], "")
    if letter and unit[1:] == "":
        return f"{number}{letter}", f"{number}{letter.upper()}i"
    return (f"{number}{letter.upper()}i",) if letter and unit[1:] == "i" else ()


def _digit(character: str) -> str:
    """`½` is 0.5; a character that is no number of its own is left as it is."""
    value = unicodedata.numeric(character, None) if character else None
    return character if value is None or character.isascii() else f"{value:g}"
