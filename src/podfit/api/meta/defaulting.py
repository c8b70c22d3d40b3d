"""Helpers for defaulting: objects are immutable, so a default makes a new object only where a value was missing."""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import zip_longest
from operator import is_not
from typing import Any, TypeVar

import msgspec

from podfit.api.meta.base import Struct
from podfit.core.quantity import Quantity

S = TypeVar("S", bound=Struct)


@cache
def empties(kind: type[Struct]) -> Mapping[str, Any]:
    """What each attribute holds that is not given."""
    made = kind()  # every field of a wire type may be left out
    return {name: getattr(made, name) for name in kind.__struct_fields__}


def fill(obj: S, **defaults: Any) -> S:
    """`obj` with the defaults of the fields that were not given, that is, still hold what the Struct starts with."""
    empty = empties(type(obj))
    missing = {}
    for name, value in defaults.items():
        held, nothing = getattr(obj, name), empty[name]
        if (held is nothing or held == nothing) and nothing != value:
            missing[name] = value
    return msgspec.structs.replace(obj, **missing) if missing else obj


def change(obj: S, **fields: Any) -> S:
    """`obj` with these fields, the very same object when they are the ones it has."""
    changed = {name: value for name, value in fields.items() if getattr(obj, name) is not value}
    return msgspec.structs.replace(obj, **changed) if changed else obj


def inside(obj: S, **steps: Callable[[Any], Any]) -> S:
    """Each step applied to the field of its name, to every item where that is a tuple; None stays None."""
    changed: dict[str, Any] = {}
    for name, step in steps.items():
        given = getattr(obj, name)
        if not given and (given is None or given == ()):
            continue
        if isinstance(given, tuple):
            items = tuple([step(item) for item in given])
            if any(map(is_not, items, given)):
                changed[name] = items
        elif (new := step(given)) is not given:
            changed[name] = new
    return msgspec.structs.replace(obj, **changed) if changed else obj


def inside_changed(obj: S, old: S | None, **steps: Callable[[Any, Any], Any]) -> S:
    """As `inside`, but what is the very same part in `old` has its defaults. A step is told what its value was there,
    None for what was not: an item of a list is compared with the one at its place."""
    changed: dict[str, Any] = {}
    for name, step in steps.items():
        given = getattr(obj, name)
        before = None if old is None else getattr(old, name)
        if given is before or given is None or given == ():
            continue
        if isinstance(given, tuple):
            places = zip_longest(given, (before or ())[: len(given)])
            items = tuple([item if item is was else step(item, was) for item, was in places])
            if any(map(is_not, items, given)):
                changed[name] = items
        elif (new := step(given, before)) is not given:
            changed[name] = new
    return msgspec.structs.replace(obj, **changed) if changed else obj


def rounded(resources: dict[str, Quantity]) -> dict[str, Quantity]:
    """Amounts finer than a thousandth round up: the API counts no finer."""
    if not [amount for amount in resources.values() if amount.nano % 1_000_000]:
        return resources
    return {name: amount.rounded_to_milli() for name, amount in resources.items()}


def completed(resources: dict[str, Quantity], extra: dict[str, Quantity]) -> dict[str, Quantity]:
    """`resources` with those of `extra` that it does not name."""
    return resources if extra.keys() <= resources.keys() else {**extra, **resources}
