"""The annotation `podfit.dev/minimum`: how far a pod may be shrunk for a more important neighbour.

    podfit.dev/minimum: cpu=200m,memory=128Mi            every container that has such a request
    podfit.dev/minimum: app:cpu=100m,log:memory=32Mi     the named containers
    podfit.dev/minimum: memory=128Mi,restart=allowed     also where resizePolicy says RestartContainer

An entry for a container takes the place of the one for all. A pod without the annotation does not shrink.
"""

from collections.abc import Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY

MINIMUM = "podfit.dev/minimum"
_RESTART, _ALLOWED = "restart", "allowed"


class BadMinimum(ValueError):
    """The annotation is not what this module describes; the text says where."""


class MinimumSize(msgspec.Struct, frozen=True):
    """The requests that one container may be brought down to. With `restart` it may be restarted on the way."""

    floor: ResourceList = msgspec.field(default_factory=dict)
    restart: bool = False


def minimums(pod: Pod) -> dict[str, MinimumSize]:
    """The annotation by container name; empty without one. Raises BadMinimum."""
    text = pod.metadata.annotations.get(MINIMUM, "")
    entries = dict[tuple[str, str], str]()
    for entry in filter(None, (part.strip() for part in text.split(","))):
        what, separator, value = entry.partition("=")
        container, _, name = what.rpartition(":")
        if not separator or not value:
            raise BadMinimum(f"{entry!r} is not [CONTAINER:]NAME=VALUE")
        if (container, name) in entries:
            raise BadMinimum(f"{what!r} is named twice")
        entries[container, name] = value
    names = {container.name for container in pod.spec.containers}
    if strangers := {container for container, _ in entries if container} - names:
        raise BadMinimum(f"no container is named {min(strangers)!r}")
    return {name: target for name in sorted(names) if (target := _target(name, entries)).floor}


def _target(container: str, entries: Mapping[tuple[str, str], str]) -> MinimumSize:
    values = {name: value for of in ("", container) for (owner, name), value in entries.items() if owner == of}
    restart = values.pop(_RESTART, "")
    if restart not in ("", _ALLOWED):
        raise BadMinimum(f"{_RESTART}={restart}: the only value is {_ALLOWED}")
    return MinimumSize({name: _amount(name, value) for name, value in values.items()}, bool(restart))


def _amount(name: str, value: str) -> Quantity:
    if name not in (CPU, MEMORY):
        raise BadMinimum(f"{name!r} is neither {CPU} nor {MEMORY} nor {_RESTART}")
    try:
        amount = Quantity.parse(value)
    except ValueError as error:
        raise BadMinimum(f"{name}={value}: {error}") from error
    if amount <= ZERO:
        raise BadMinimum(f"{name}={value}: a minimum is more than nothing")
    return amount
