"""Which amounts of which containers a resize changes, and which of them are hardly meant."""

from collections.abc import Iterator

import msgspec

from podfit.answers.facts.pod_state import RESOURCES
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.pod.allocated import NOTHING

KIBI, BYTE = 1024, Quantity.of(1).nano


class Change(msgspec.Struct, frozen=True):
    """`container` is empty for the pod as a whole; `side` is requests or limits; amounts are empty when not set."""

    container: str
    resource: str
    side: str
    before: str
    after: str


class Amounts(msgspec.Struct, frozen=True):
    """Request and limit; empty when not set."""

    request: str = ""
    limit: str = ""

    def __str__(self) -> str:
        """`500m`, or with a limit `500m/1`."""
        return f"{self.request or 'none'}/{self.limit}" if self.limit else self.request or "none"


class ResourceChange(msgspec.Struct, frozen=True):
    """One resource of a container (empty for the pod as a whole) of which request or limit changes."""

    container: str
    resource: str
    before: Amounts
    after: Amounts

    def __str__(self) -> str:
        """`200m/800m → 1/4`."""
        both = self.before.limit or self.after.limit
        if both and not (self.before.limit and self.after.limit):  # a limit is added or taken away
            return " → ".join(f"{size.request or 'none'}/{size.limit or 'none'}" for size in (self.before, self.after))
        return f"{self.before} → {self.after}"


def changes(new: Pod, old: Pod) -> Iterator[Change]:
    """Those of the pod as a whole first, then by container."""
    before = {container.name: container.resources for container in all_containers(old.spec)}
    yield from _differences("", new.spec.resources or NOTHING, old.spec.resources or NOTHING)
    for container in all_containers(new.spec):
        yield from _differences(container.name, container.resources, before[container.name])


def resizing(new: Pod, old: Pod) -> Iterator[ResourceChange]:
    """The sizes that change, with the request beside a limit that does, and the other way round; in the order of
    `changes`."""
    levels = {"": (new.spec.resources or NOTHING, old.spec.resources or NOTHING)}
    before = {container.name: container.resources for container in all_containers(old.spec)}
    levels |= {container.name: (container.resources, before[container.name]) for container in all_containers(new.spec)}
    for name, (after, earlier) in levels.items():
        for resource in RESOURCES:
            sizes = [
                Amounts(_text(resources.requests, resource), _text(resources.limits, resource))
                for resources in (earlier, after)
            ]
            if sizes[0] != sizes[1]:
                yield ResourceChange(name, resource, sizes[0], sizes[1])


def _differences(name: str, new: ResourceRequirements, old: ResourceRequirements) -> Iterator[Change]:
    for resource in RESOURCES:
        for side in ("requests", "limits"):
            after, before = (_text(getattr(resources, side), resource) for resources in (new, old))
            if after != before:
                yield Change(name, resource, side, before, after)


def _text(amounts: ResourceList, name: str) -> str:
    return str(amounts[name]) if name in amounts else ""


def doubts(new: Pod, old: Pod) -> Iterator[str]:
    """Amounts that are accepted and hardly meant, as kubectl warns of them."""
    before = {container.name: container.resources for container in all_containers(old.spec)}
    for field, containers in (("initContainers", new.spec.init_containers), ("containers", new.spec.containers)):
        for index, container in enumerate(containers):
            yield from _odd(f"spec.{field}[{index}].resources", container.resources, before[container.name])
    if new.spec.resources is not None:
        yield from _odd("spec.resources", new.spec.resources, old.spec.resources or NOTHING)


def _odd(path: str, new: ResourceRequirements, old: ResourceRequirements) -> Iterator[str]:
    for side in ("limits", "requests"):
        amount = getattr(new, side).get("memory")
        if amount is None or amount == getattr(old, side).get("memory"):
            continue
        if amount.nano % BYTE:
            yield f'{path}.{side}[memory]: fractional byte value "{amount}" is invalid, must be an integer'
        elif amount.value() < KIBI * KIBI:
            yield f"{path}.{side}[memory]: {amount} is {amount.value()} bytes; was {amount.value()}Mi meant?"
