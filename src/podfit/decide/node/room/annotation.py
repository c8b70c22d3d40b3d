"""The annotation `podfit.dev/gave-room`: for whom a pod was shrunk, and its sizes before.

It holds as long as the pod has the size that it was shrunk to. Whoever resizes it since has decided anew.
"""

from collections.abc import Mapping

import msgspec

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.base import ResourceList
from podfit.core.resources import CPU, MEMORY, only
from podfit.decide.node.room.shrinkable import Shrink

GAVE = "podfit.dev/gave-room"


class Sides(msgspec.Struct, frozen=True):
    requests: ResourceList
    limits: ResourceList


class RoomRecord(msgspec.Struct, frozen=True):
    """`to` is the pod that grew; each container that gave had `before` at first, and has `after` now."""

    to: str
    before: Mapping[str, Sides]
    after: Mapping[str, Sides]

    @property
    def text(self) -> str:
        """`cpu 2 → 1`, by container where there are several."""
        return ", ".join(
            f"{f'{name} ' if len(self.after) > 1 else ''}{resource} {self.before[name].requests[resource]} → {amount}"
            for name, after in self.after.items()
            for resource, amount in after.requests.items()
            if self.before[name].requests.get(resource) != amount
        )


def gave(pod: Pod) -> RoomRecord | None:
    """What the pod's note says; None without one, and when the pod has another size by now."""
    note = pod.metadata.annotations.get(GAVE)
    if note is None:
        return None
    try:
        found = codec.decode(note.encode(), RoomRecord)
    except (msgspec.DecodeError, ValueError):
        return None  # not ours to interpret: anybody may write annotations
    present = {container.name: _sides(container.resources) for container in pod.spec.containers}
    holds = all(present.get(name) == after and name in found.before for name, after in found.after.items())
    return found if holds else None


def noted(change: Shrink, to: str) -> str:
    """The note for a pod that is about to give; it goes on from an earlier gift that still holds."""
    earlier = gave(change.pod)
    now = {container.name: _sides(container.resources) for container in change.pod.spec.containers}
    after = {name: _sides(resources) for name, resources in change.containers.items()}
    before = {name: now[name] for name in after}
    if earlier is not None:
        before, after = {**before, **earlier.before}, {**earlier.after, **after}
    return codec.encode(RoomRecord(to, before, after)).decode()


def shrink_text(change: Shrink, to: str) -> str:
    """`cpu 2 → 1`: what a gift takes."""
    after = {name: _sides(resources) for name, resources in change.containers.items()}
    now = {container.name: _sides(container.resources) for container in change.pod.spec.containers}
    return RoomRecord(to, {name: now[name] for name in after}, after).text


def _sides(resources: ResourceRequirements) -> Sides:
    return Sides(only(resources.requests, (CPU, MEMORY)), only(resources.limits, (CPU, MEMORY)))
