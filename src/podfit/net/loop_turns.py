"""Turns of the event loop: long work that lets others have theirs."""

import asyncio
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from podfit.core.loop_slices import OBJECTS

P = ParamSpec("P")
T = TypeVar("T")

MANY = 1000
"""Objects that are decided on in one turn: some 10 ms. More of them are decided on in a thread."""


async def in_turns(objects: Iterable[T], at_once: int = OBJECTS) -> list[T]:
    """What a generator makes, `at_once` objects in each turn."""
    made = list[T]()
    for number, obj in enumerate(objects, 1):
        made.append(obj)
        if number % at_once == 0:
            await asyncio.sleep(0)
    return made


async def beside(size: int, decide: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a pure function says of `size` objects; of many in a thread, which takes turns with the event loop."""
    if size <= MANY:
        return decide(*args, **kwargs)
    return await asyncio.to_thread(decide, *args, **kwargs)
