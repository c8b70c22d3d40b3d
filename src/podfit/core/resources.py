"""Arithmetic on resource lists, the maps from resource names to amounts.

A list is never changed in place: every function answers a new one, so that objects that share a list stay immutable. A
name that is absent counts as zero in sums; whether it is *present* still matters to callers, and is kept.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from podfit.core.quantity import ZERO, Quantity

ResourceList: TypeAlias = Mapping[str, Quantity]

CPU = "cpu"
MEMORY = "memory"
HUGEPAGES = "hugepages-"


def add(*lists: ResourceList) -> dict[str, Quantity]:
    """The sum by name."""
    result: dict[str, Quantity] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            result[name] = result[name] + amount if name in result else amount
    return result


def subtract(left: ResourceList, right: ResourceList) -> dict[str, Quantity]:
    """left − right by name; a name only on the right comes out negative."""
    return {name: left.get(name, ZERO) - right.get(name, ZERO) for name in {**left, **right}}


def positive(resources: ResourceList) -> dict[str, Quantity]:
    """Only what is above zero."""
    return {name: amount for name, amount in resources.items() if amount > ZERO}


def maximum(*lists: ResourceList) -> dict[str, Quantity]:
    """The larger by name, over the names of any."""
    result: dict[str, Quantity] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            if name not in result or amount > result[name]:
                result[name] = amount
    return result


def only(resources: ResourceList, names: Iterable[str]) -> dict[str, Quantity]:
    """The part that these names make up."""
    return {name: resources[name] for name in names if name in resources}


def is_native(name: str) -> bool:
    """Resources of Kubernetes itself carry no domain, or its own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """A device or other countable thing that a plugin advertises, `example.com/gpu`."""
    return not is_native(name) and not name.startswith("requests.")


def overcommittable(name: str) -> bool:
    """Whether requests may be below limits: neither huge pages nor extended resources can be shared."""
    return is_native(name) and not name.startswith(HUGEPAGES)


def pod_level(name: str) -> bool:
    """Whether `spec.resources` of a pod may name it (R-050)."""
    return name in (CPU, MEMORY) or name.startswith(HUGEPAGES)
