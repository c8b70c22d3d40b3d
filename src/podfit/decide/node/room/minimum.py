"""The annotation `podfit.dev/minimum`: how far a pod may be shrunk for a more important neighbour.

    podfit.dev/minimum: cpu=200m,memory=128Mi            every container that has such a request
    podfit.dev/minimum: app:cpu=100m,log:memory=32Mi     the named containers
    podfit.dev/minimum: memory=128Mi,restart=allowed     also where resizePolicy says RestartContainer

An entry for a container takes the place of the one for all. A pod without the annotation does not shrink.
"""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY

MINIMUM = "podfit.dev/minimum"
LONGEST = 32 * 1024
"""Characters: twice what it takes to name both sizes of every container of the largest pod."""
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
    if len(text) > LONGEST:
        raise BadMinimum(f"it is longer than {LONGEST} characters")
    entries = dict[str, dict[str, str]]()
    for entry in filter(None, (part.strip() for part in text.split(","))):
        what, separator, value = entry.partition("=")
        container, _, name = what.rpartition(":")
        if not separator or not value:
            raise BadMinimum(f"{entry!r} is not [CONTAINER:]NAME=VALUE")
        mine = entries.setdefault(container, {})
        if name in mine:
            raise BadMinimum(f"{what!r} is named twice")
        mine[name] = value
    names = {container.name for container in pod.spec.containers}
    if strangers := entries.keys() - names - {""}:
        raise BadMinimum(f"no container is named {min(strangers)!r}")
    return {name: target for name in sorted(names) if (target := _target(name, entries)).floor}


def offers(pods: Iterable[Pod]) -> dict[str, dict[str, MinimumSize] | BadMinimum]:
    """How far each pod, by UID, lets itself be shrunk, or what is wrong with its annotation."""
    found = dict[str, dict[str, MinimumSize] | BadMinimum]()
    for pod in pods:
        try:
            found[pod.metadata.uid] = minimums(pod)
        except BadMinimum as error:
            found[pod.metadata.uid] = error.with_traceback(None)
    return found


def _target(container: str, entries: Mapping[str, Mapping[str, str]]) -> MinimumSize:
    values = {**entries.get("", {}), **entries.get(container, {})}
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


def offer_version(pod: Pod) -> tuple[int, str]:
    """It changes when a pod that could not be shrunk may be asked again."""
    return pod.metadata.generation, pod.metadata.annotations.get(MINIMUM, "")
