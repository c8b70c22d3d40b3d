"""`Shape`: something that can be given in any size, for `support.doubling`."""

from collections.abc import Callable
from typing import NamedTuple

Work = Callable[[], object]
"""It may return a coroutine, which is awaited."""


class Shape(NamedTuple):
    name: str
    most: int
    make: Callable[[int], Work]
    """The work on something of this size. What it takes to make it is not measured."""
