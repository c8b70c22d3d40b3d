"""Limits that grow with requests in proportion, in readable amounts.

The proportion is taken from where it was said, not from the container's present amounts: those are rounded, and a
proportion of rounded amounts would drift with every resize. Where a LimitRange bounds the proportion
(maxLimitRequestRatio), an amount is not rounded up beyond the bound.

A VPA's limits are not these but those of `decide.autoscaling.limit_ranges`, in upstream's integers and with its notes.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from podfit.api.core.v1.limits.types import LimitRange
from podfit.core.quantity import ZERO, Format, Quantity

Pair: TypeAlias = tuple[Quantity, Quantity]
"""A request and a limit of one resource."""

MILLI = Quantity.of_milli(1).nano
UNIT = Quantity.of(1).nano
_CPU_STEPS = ((100, 1), (1000, 10), (10_000, 50), (100_000, 500))
_MEMORY_STEPS = ((1 << 10, 1), (16 << 10, 16), (256 << 10, 256))


def largest_ratio(
    name: str, limit_ranges: Iterable[LimitRange], *, alone: bool, level: bool = False
) -> Quantity | None:
    """The bound on limit / request of one resource of a container, or of the pod as a whole (`level`), if any.

    Of a container that is not `alone`, a bound on the pod allows no rounding up at all: its share is not known.
    """
    bounds = [
        bound if item.type == "Container" or alone or level else ZERO
        for limits in limit_ranges
        for item in (limits.spec.limits or ())
        if item.type == "Pod" or (item.type == "Container" and not level)
        for bound in (item.max_limit_request_ratio.get(name),)
        if bound is not None
    ]
    return min(bounds, default=None)


def limit_for(
    request: Quantity, now: Pair, said: Sequence[Pair], *, memory: bool, ratio: Quantity | None = None
) -> Quantity:
    """`said` are pairs that the proportion may have come from, the first one that explains the present pair counts.
    `ratio` is what limit / request must not exceed by rounding.

    Where none does somebody has set the limit on purpose, and the present proportion is kept. A request that there was
    not has no proportion: the limit stays, or is raised to the request.
    """
    before, limit = now
    if not before:
        return max(limit, request)
    explains = (
        pair
        for pair in said
        if pair[0] and limit in [_scaled(before, pair, memory=memory, ratio=bound) for bound in (None, ratio)]
    )
    return _scaled(request, next(explains, now), memory=memory, ratio=ratio)


def _scaled(request: Quantity, pair: Pair, *, memory: bool, ratio: Quantity | None = None) -> Quantity:
    before, limit = pair
    if limit <= before:
        return request
    exact, rest = divmod(limit.nano * request.nano, before.nano)
    if request == before:
        return limit
    unit = _unit(exact, request, memory=memory)
    whole = _smallest(request, memory=memory)
    if not rest and exact % whole == 0:
        return Quantity(exact, request.format)
    nearest = (exact + unit // 2) // unit * unit
    while nearest <= request.nano:  # the same as the request would be another QoS class
        nearest += unit
    if ratio is not None and nearest > exact and nearest * UNIT > ratio.nano * request.nano:
        lower = [exact // step * step for step in (unit, whole, UNIT if memory else MILLI)]
        nearest = next((amount for amount in lower if amount > request.nano), nearest)
    return Quantity(nearest, request.format)


def _smallest(request: Quantity, *, memory: bool) -> int:
    """Multiples of it are what people write: whole milli-CPUs, mebibytes or megabytes, bytes where those are meant."""
    if not memory:
        return MILLI
    mega = (1 << 20 if request.format is Format.BINARY_SI else 10**6) * UNIT
    return mega if request.nano % mega == 0 else UNIT


def _unit(exact: int, request: Quantity, *, memory: bool) -> int:
    """What an amount that does not come out even is rounded to: coarser the larger it is."""
    whole = _smallest(request, memory=memory)
    if memory and whole == UNIT:
        return UNIT
    steps = _MEMORY_STEPS if memory else _CPU_STEPS
    last = 4096 if memory else 1000
    return whole * next((step for below, step in steps if exact < below * whole), last)
