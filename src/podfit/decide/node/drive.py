"""`drive`, the loop of every machine: take an event, carry out what follows, feed back what came of it.

    kubelet              the runtime and the kernel, durable notes, events at the API
    plan and why         what the API tells, in virtual time
    making room          resizes and evictions asked of the API, or of a plan

Worlds differ, the loop does not. A world that waits for nothing is driven by `at_once`.
"""

from collections import deque
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar

Event = TypeVar("Event")
Effect = TypeVar("Effect")
Event_in = TypeVar("Event_in", contravariant=True)
Event_out = TypeVar("Event_out", covariant=True)
Effect_in = TypeVar("Effect_in", contravariant=True)
Effect_out = TypeVar("Effect_out", covariant=True)
T = TypeVar("T")


class Machine(Protocol[Event_in, Effect_out]):
    async def take(self, event: Event_in, /) -> Iterable[Effect_out]:
        """Change by the event; what is to be done, in order."""


class World(Protocol[Effect_in, Event_out]):
    async def carry_out(self, effect: Effect_in, /) -> Iterable[Event_out]:
        """Do it; the events that tell what came of it."""


async def drive(machine: Machine[Event, Effect], world: World[Effect, Event], *events: Event) -> tuple[Effect, ...]:
    """The effects that were carried out, in order. Events wait for those before them, with all their effects."""
    waiting, done = deque(events), list[Effect]()
    while waiting:
        for effect in await machine.take(waiting.popleft()):
            waiting.extend(await world.carry_out(effect))
            done.append(effect)
    return tuple(done)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What comes of work that waits for nothing. RuntimeError: it did wait."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a world in virtual time waits for nothing")
