"""Resource estimation: what of a node is requested and unused, so that it can be lent, and who gives it back.

    a look, every 10 s     of each pod that owns requests: what it has requested and does not use now; of the node: what
                           nobody but borrowers uses
    the window, 60 s       the least of its looks counts: what was needed a minute ago may be needed again
    the margin             a tenth of what is requested stays with its owners
    written                when it differs by a twentieth from what was written, or when it is nothing

Owners have their CPU back at once, by weight: the kernel decides. Memory has to be taken from borrowers: when less than
`kept_free` is free on the node they end, in the order of `giving_way`. A borrower that runs stays although less is lent
than it asked for, as long as its memory is not needed; no other is admitted then.
"""

from collections.abc import Iterable, Sequence

import msgspec

from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.node.pod_load import Load
from podfit.decide.pod.spare import MIB, SPARE_CPU, SPARE_MEMORY
from podfit.decide.pod.system_priority import is_critical

LOOK_SECONDS = 10.0
MEMORY_SECONDS = 2.0
"""From one look at the node's free memory to the next, while there are borrowers."""
WINDOW_SECONDS = 60.0
MARGIN, CHANGE = 10, 20
"""A tenth, a twentieth."""
FREE_PERCENT, MOST_KEPT_FREE = 5, 1 << 30


class Held(msgspec.Struct, frozen=True):
    """Millicores and bytes."""

    cpu: int = 0
    memory: int = 0

    def __add__(self, other: "Held") -> "Held":
        return Held(self.cpu + other.cpu, self.memory + other.memory)

    def least(self, other: "Held") -> "Held":
        return Held(min(self.cpu, other.cpu), min(self.memory, other.memory))


class RequestAndUse(msgspec.Struct, frozen=True):
    """What a pod has requested, and what it uses."""

    requested: Held
    used: Held

    @property
    def unused(self) -> Held:
        return Held(max(0, self.requested.cpu - self.used.cpu), max(0, self.requested.memory - self.used.memory))


class Look(msgspec.Struct, frozen=True):
    """A look at one moment (`at`: seconds): what owners have requested, what of it they do not use, and what of the
    node nobody but borrowers uses."""

    at: float
    requested: Held
    unused: Held
    free: Held


def look(at: float, owners: Iterable[RequestAndUse], free: Held) -> Look:
    """The look at all pods of a node; whoever uses more than requested lends nothing, and takes from `free`."""
    requested, unused = Held(), Held()
    for owner in owners:
        requested, unused = requested + owner.requested, unused + owner.unused
    return Look(at, requested, unused, free)


def within_window(looks: Sequence[Look], now: float) -> tuple[Look, ...]:
    """Those that still count."""
    return tuple(one for one in looks if now - one.at < WINDOW_SECONDS)


def lent(looks: Sequence[Look]) -> Held:
    """What can be lent after these looks, the newest last; nothing before the first."""
    if not looks:
        return Held()
    least = looks[0].unused.least(looks[0].free)
    for one in looks[1:]:
        least = least.least(one.unused).least(one.free)
    kept = looks[-1].requested
    return Held(max(0, least.cpu - kept.cpu // MARGIN), max(0, least.memory - kept.memory // MARGIN))


def as_resources(held: Held) -> ResourceList:
    return {SPARE_CPU: Quantity.of(held.cpu), SPARE_MEMORY: Quantity.of(held.memory // MIB)}


def told_anew(told: ResourceList, now: ResourceList) -> ResourceList:
    """What the node tells from now on, after it told `told` (empty: nothing yet)."""
    if not told and not any(now.values()):
        return told
    return now if any(_differs(told.get(name), amount) for name, amount in now.items()) else told


def _differs(told: Quantity | None, now: Quantity) -> bool:
    if told is None or not now:
        return told != now
    return abs(now.nano - told.nano) * CHANGE >= told.nano and now != told


def kept_free(capacity: int) -> int:
    """Bytes of a node's memory below which borrowers end: enough for what its owners take until the next look."""
    return min(capacity * FREE_PERCENT // 100, MOST_KEPT_FREE)


def giving_way(borrowers: Iterable[Load], available: int, capacity: int, going: int = 0) -> tuple[Load, ...]:
    """Who ends now, so that `kept_free` is free again when they are gone: the lowest priority first, then who uses most
    memory. `available` is what is free, `going` what comes free of those that are ending already; all in bytes."""
    short = kept_free(capacity) - available - going
    gone: list[Load] = []
    may_go = (load for load in borrowers if not is_critical(load.pod))
    for load in sorted(may_go, key=lambda load: (load.priority, -_memory(load), load.pod.metadata.uid)):
        if short <= 0:
            break
        gone.append(load)
        short -= _memory(load)
    return tuple(gone)


def _memory(load: Load) -> int:
    return sum(load.memory.values())


def message(available: int, capacity: int) -> str:
    """Why a borrower was ended."""
    kept, free = Quantity.of_bytes(kept_free(capacity)), Quantity.of_bytes(available)
    return (
        f"The node needs the memory that it had lent ({SPARE_MEMORY}): {free} available, {kept} kept free for the pods "
        "that have requested it. "
    )
