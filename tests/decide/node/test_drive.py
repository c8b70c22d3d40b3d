"""The loop of every machine: events in their order, effects before the next event, and what came of them after all."""

import asyncio
from collections.abc import Iterable

import pytest

from podfit.decide.node.drive import at_once, drive


class Counting:
    """A machine that asks for as many effects as an event says, and a world that answers each with a smaller event."""

    def __init__(self, *, waits: bool = False) -> None:
        self.seen: list[str] = []
        self._waits = waits

    async def take(self, event: int) -> Iterable[str]:
        self.seen.append(f"event {event}")
        return [f"{event}.{number}" for number in range(event)]

    async def carry_out(self, effect: str) -> Iterable[int]:
        self.seen.append(f"effect {effect}")
        if self._waits:
            await asyncio.sleep(0)
        return (int(effect.partition(".")[0]) - 1,)


def test_what_follows_waits_for_what_was_there_before() -> None:
    node = Counting()
    done = at_once(drive(node, node, 2, 1))
    assert node.seen == [
        *("event 2", "effect 2.0", "effect 2.1"),
        *("event 1", "effect 1.0"),
        *("event 1", "effect 1.0", "event 1", "effect 1.0"),
        *("event 0", "event 0", "event 0"),
    ]
    assert done == ("2.0", "2.1", "1.0", "1.0", "1.0")


def test_virtual_time_waits_for_nothing() -> None:
    node = Counting(waits=True)
    with pytest.raises(RuntimeError, match="waits for nothing"):
        at_once(drive(node, node, 1))
