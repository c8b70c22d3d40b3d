"""Applies the LimitRanges of a namespace to recommendations (V-060, V-063).

What a LimitRange forbids is said by `decide.limits.limit_range`; here amounts are moved within it before anybody asks.
Limits keep their proportion in whole units, cut off, since they have to equal upstream's; what a person asks for keeps
it in readable amounts (`decide.resize.proportion`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from podfit.api.core.v1.limits.types import LimitRange, LimitRangeItem
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.container_view import amount_of, units
from podfit.decide.autoscaling.policies import RESOURCES

LARGEST = 2**63 - 1
NOTHING: ResourceList = {}


def effective(limit_ranges: Iterable[LimitRange], type_: Literal["Container", "Pod"]) -> LimitRangeItem | None:
    """All items of a type as one: the smallest maximum, the largest minimum, the last default by name."""
    items = [
        item
        for limit_range in sorted(limit_ranges, key=lambda candidate: candidate.metadata.name)
        for item in (limit_range.spec.limits or ())
        if item.type == type_ and (item.max or item.min or item.default)
    ]
    if not items:
        return None
    most = _tightest((item.max for item in items), min)
    least = _tightest((item.min for item in items), max)
    defaults = [item.default for item in items if item.default]
    return LimitRangeItem(type=type_, max=most, min=least, default=defaults[-1] if defaults else {})


def _tightest(every: Iterable[ResourceList], choose: Callable[[Quantity, Quantity], Quantity]) -> dict[str, Quantity]:
    result: dict[str, Quantity] = {}
    for resource_list in every:
        if not result:
            result = dict(resource_list)
        for name in RESOURCES:
            if name in resource_list:
                result[name] = choose(result.get(name, resource_list[name]), resource_list[name])
    return result


class Limits(msgspec.Struct, frozen=True):
    """Limits in the proportion that a container's author chose, and what could not be done."""

    amounts: ResourceList
    notes: tuple[str, ...] = ()


def proportional_limits(own: ResourceRequirements, requests: ResourceList, default: ResourceList = NOTHING) -> Limits:
    """Limits for new `requests`, as far above them as the container's own limits (or `default`) are above its own."""
    found = {name: _proportional(name, own, requests.get(name), default.get(name)) for name in RESOURCES}
    amounts = {name: limit for name, (limit, _) in found.items() if limit is not None}
    return Limits(amounts, tuple(note for _, note in found.values() if note) if amounts else ())


def proportional_limit(
    name: str, own: ResourceRequirements, request: Quantity | None, default: Quantity | None
) -> Quantity | None:
    """For one resource; None when there is nothing to keep the proportion of."""
    return _proportional(name, own, request, default)[0]


def _proportional(
    name: str, own: ResourceRequirements, request: Quantity | None, default: Quantity | None
) -> tuple[Quantity | None, str]:
    limit, before = own.limits.get(name) or default, own.requests.get(name)
    if not limit:
        return None, f"{name}: limit NOT set since originalLimit is nil or 0"
    if not request:
        return None, f"{name}: limit NOT set since recommendedRequest is nil or 0"
    if not before or before.milli() == limit.milli():
        return request, ""
    number = units(name, limit) * units(name, request) // units(name, before)
    if number > LARGEST:
        note = f"{name}: failed to keep limit to request ratio; capping limit to int64"
        return amount_of(name, LARGEST, request), note
    return amount_of(name, number, request), ""


def request_bounds(own: ResourceRequirements, item: LimitRangeItem) -> tuple[ResourceList, ResourceList]:
    """The least and the most that a container may request so that its limits, in proportion, are allowed."""
    least = dict(_boundaries(own, item.min, item.default))
    for name, amount in item.min.items():
        least[name] = max(amount, least.get(name, amount))
    return least, dict(_boundaries(own, item.max, item.default))


def _boundaries(
    own: ResourceRequirements, bounds: ResourceList, default: ResourceList
) -> Iterator[tuple[str, Quantity]]:
    for name in RESOURCES:
        bound, limit, request = bounds.get(name), own.limits.get(name) or default.get(name), own.requests.get(name)
        if not bound or not limit:
            continue
        if not request:
            yield name, bound
        else:
            number = units(name, request) * units(name, bound) // units(name, limit)
            yield name, amount_of(name, number, request)
