"""Turns of the event loop: long work that lets others have theirs."""

import asyncio
from collections.abc import Iterable
from typing import TypeVar

from podfit.core.loop_slices import OBJECTS

T = TypeVar("T")


async def in_turns(objects: Iterable[T], at_once: int = OBJECTS) -> list[T]:
    """What a generator makes, `at_once` objects in each turn."""
    made = list[T]()
    for number, obj in enumerate(objects, 1):
        made.append(obj)
        if number % at_once == 0:
            await asyncio.sleep(0)
    return made
