"""Slices of long work: how much may be done in one turn of the event loop.

What works through something large calls `spend` as it goes. Within `allowance` it is stopped by `TooLong` once that is
used up, and whoever called it does it again where it may take its time; without one it goes on.
"""

from contextvars import ContextVar, Token

ONE_TURN = 20_000
"""Units: about a microsecond each. A turn may take 100 ms."""
OBJECTS = 50
"""How many objects of a long list are decoded, or handed on, in one turn: some milliseconds."""


class TooLong(Exception):
    """More than one turn allows."""


class _Left:
    def __init__(self, units: int) -> None:
        self.units = units


_LEFT: ContextVar[_Left | None] = ContextVar("left", default=None)


class Allowance:
    """A context in which no more than `units` may be spent."""

    __slots__ = ("_token", "_units")

    _token: Token[_Left | None]

    def __init__(self, units: int = ONE_TURN) -> None:
        self._units = units

    def __enter__(self) -> None:
        self._token = _LEFT.set(_Left(self._units))

    def __exit__(self, *_: object) -> None:
        _LEFT.reset(self._token)


def left() -> int | None:
    """None where nothing is limited."""
    found = _LEFT.get()
    return None if found is None else found.units


def spend(units: int) -> None:
    """Raises TooLong."""
    found = _LEFT.get()
    if found is None:
        return
    found.units -= units
    if found.units < 0:
        raise TooLong
