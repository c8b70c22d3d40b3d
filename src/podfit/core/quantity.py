"""`Quantity`: exact resource amounts that keep the notation of their author.

A quantity is an integer count of nano units, the finest that the API keeps, plus the family of its suffix, which
decides how it is printed. Equality is numeric (`1` equals `1000m`, R-010). Printing is canonical: no fraction,
the largest suffix that loses nothing, `0.9Gi` becoming `966367641600m` because no binary suffix can say it (R-019).
"""

import re
from enum import Enum
from functools import lru_cache

_NANO = 10**9
_LONGEST_KEPT = 64  # letters of a text that is not read anew
_LARGEST = (2**63 - 1) * _NANO
_PATTERN = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class Format(Enum):
    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"

    __hash__ = object.__hash__  # a member is one object; the hash of Enum is written in Python, and asked for often


class Quantity:
    """An immutable amount. `Quantity.parse("1500m")`, `Quantity.of_milli(1500)`, `Quantity.of(2**20)`."""

    __slots__ = ("format", "nano")
    nano: int
    format: Format

    def __init__(self, nano: int, form: Format = Format.DECIMAL_SI) -> None:
        object.__setattr__(self, "nano", nano)
        object.__setattr__(self, "format", form)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a quantity cannot change: {name}")

    @staticmethod
    def parse(text: str) -> "Quantity":
        """Read the wire form. ValueError names what is wrong; finer than a nano unit rounds away from zero."""
        return _parse(text) if len(text) <= _LONGEST_KEPT else _parse.__wrapped__(text)

    @staticmethod
    def of(value: int, form: Format = Format.DECIMAL_SI) -> "Quantity":
        return Quantity(value * _NANO, form)

    @staticmethod
    def of_bytes(value: int) -> "Quantity":
        return Quantity(value * _NANO, Format.BINARY_SI)

    @staticmethod
    def of_milli(milli: int) -> "Quantity":
        return Quantity(milli * (_NANO // 1000))

    def value(self) -> int:
        """Whole units, rounded up."""
        return -(-self.nano // _NANO)

    def milli(self) -> int:
        """Thousandths, rounded up."""
        return -(-self.nano // (_NANO // 1000))

    def rounded_to_milli(self) -> "Quantity":
        return Quantity(self.milli() * (_NANO // 1000), self.format)

    def is_integer(self) -> bool:
        return self.nano % _NANO == 0

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nano, self.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __str__(self) -> str:
        return canonical(self.nano, self.format)


ZERO = Quantity(0)


@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(MALFORMED)
    sign, number, suffix, exponent = match.groups()
    whole, _, fraction = number.partition(".")
    digits, scale = int((whole + fraction) or "0"), -len(fraction)
    if suffix in _BINARY:
        form, multiplier, power = Format.BINARY_SI, 1 << _BINARY[suffix], 0
    elif exponent is not None:
        form, multiplier, power = Format.DECIMAL_EXPONENT, 1, int(exponent)
    else:
        form, multiplier, power = Format.DECIMAL_SI, 1, _DECIMAL[suffix or ""]
    nano = _scaled(digits * multiplier, scale + power + 9)
    if form is Format.BINARY_SI and 0 < nano < _NANO:
        form = Format.DECIMAL_SI
    return Quantity(-nano if sign == "-" else nano, form)


def _scaled(digits: int, power: int) -> int:
    """digits × 10^power, rounded up and capped, without building numbers of absurd size."""
    if digits == 0:
        return 0
    if power < 0:
        return 1 if -power > len(str(digits)) else -(-digits // 10**-power)
    return _LARGEST if power > 40 else min(digits * 10**power, _LARGEST)


@lru_cache(maxsize=8192)
def canonical(nano: int, form: Format) -> str:
    """How an amount is printed."""
    if nano == 0:
        return "0"
    sign, size = ("-", -nano) if nano < 0 else ("", nano)
    if form is Format.BINARY_SI and size >= 1024 * _NANO and size % _NANO == 0:
        return sign + _binary(size // _NANO)
    exponent = -9
    while size % 1000 == 0 and exponent < 18:
        size, exponent = size // 1000, exponent + 3
    if form is Format.DECIMAL_EXPONENT:
        return f"{sign}{size}e{exponent}" if exponent else f"{sign}{size}"
    return f"{sign}{size}{_SUFFIX_OF[exponent]}"


def _binary(value: int) -> str:
    for suffix in ("", *_BINARY):
        if value % 1024 or suffix == "Ei":
            return f"{value}{suffix}"
        value //= 1024
    raise AssertionError("unreachable: Ei always ends the loop")
