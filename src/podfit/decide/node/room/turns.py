"""The machine of making room: several deferred resizes of a node, in the node's own queue order.

    Looked ──▶ NoRoom … MakeRoom ──▶ Looked …      until nothing follows

It is driven by `decide.node.drive`: by the controller, whose world is the API (`controllers.make_room`), and by a plan
(`answers.node.making_room`).
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.decide.node.room.plan import Impossible, NothingNeeded, RoomPlan, Targets, allocated_form, plan
from podfit.decide.pod.resize_state import ResizeState
from podfit.decide.resize.queue_order import QueueKey, queue_key


def turn_of(pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> QueueKey:
    """Sorts pods that wait into the order of their node."""
    return queue_key(pod, allocated_form(pod, gates), ResizeState.of(pod).waits_since)


class Looked(msgspec.Struct, frozen=True):
    """A node as it is: `waiting` are its deferred resizes in its own order, `pods` by UID all that are active there,
    `targets` how far each may be shrunk.
    """

    waiting: tuple[Pod, ...]
    pods: Mapping[str, Pod]
    allocatable: ResourceList
    targets: Targets


class NoRoom(msgspec.Struct, frozen=True):
    """Say why no room is made for this pod."""

    pod: Pod
    why: Impossible


class MakeRoom(msgspec.Struct, frozen=True):
    """Shrink and evict for this pod, all of the plan or nothing of it; then look again."""

    pod: Pod
    plan: RoomPlan


class RoomMachine(msgspec.Struct, frozen=True):
    """What `drive` takes a look at a node to. It remembers nothing: what is under way is seen in the pods."""

    gates: FeatureGates = DEFAULT_GATES
    evict: bool = False

    async def take(self, event: Looked) -> list[NoRoom | MakeRoom]:
        """One pod after the other, up to the first plan: when that has been acted on, the facts are other ones."""
        return self.effects(event)

    def effects(self, seen: Looked) -> list[NoRoom | MakeRoom]:
        """The same, where one waits for it in a thread."""
        return list(self._effects(seen))

    def _effects(self, seen: Looked) -> Iterator[NoRoom | MakeRoom]:
        counted = dict(seen.pods)
        for pod in seen.waiting:
            others = [other for uid, other in counted.items() if uid != pod.metadata.uid]
            outcome = plan(pod, others, seen.allocatable, seen.targets, evict=self.evict, gates=self.gates)
            match outcome:
                case Impossible():
                    yield NoRoom(pod, outcome)
                case NothingNeeded():
                    counted[pod.metadata.uid] = granted(pod)
                case RoomPlan():
                    yield MakeRoom(pod, outcome)
                    return


def granted(pod: Pod) -> Pod:
    """A pod whose resize is on its way, as it will count: at what it desires."""
    return replace(pod, status=PodStatus(phase=pod.status.phase, qos_class=pod.status.qos_class))
