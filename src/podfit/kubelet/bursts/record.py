"""Which limits this node has moved, durable before anything follows from it.

A move is not another allocation: it is what the node desires for the pod in place of its spec, until that changes. So
what follows is what follows a resize: the verdict, the checkpoint, the growth in the kernel, the runtime, the status.
It holds for the generation of the spec that it was made for, and inside the ceiling that the pod has now. Whatever the
API says next counts again, and the updater says the same as the node as soon as it can.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.meta.base import ResourceList
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.core.quantity import Quantity
from podfit.core.times import format_time
from podfit.decide.pod.burst_ceiling import BurstRange, ranges_of, with_limits
from podfit.decide.pod.resize_state import BURST
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.disk.writer import DiskWriter
from podfit.net.files import write_atomic

log = logging.getLogger(__name__)
Limits = Mapping[str, ResourceList]


class Moved(msgspec.Struct, frozen=True):
    """Limits by container and resource, for a generation of the pod's spec; since when (RFC 3339), and why."""

    generation: int
    limits: Mapping[str, Mapping[str, str]]
    since: str
    why: str


class BurstRecord:
    """`path` is the file that holds it, None for a node without files. Every move is written as a whole file: there are
    few, and each is small.
    """

    def __init__(self, path: Path | None, writer: DiskWriter, clock: Clock, gates: FeatureGates) -> None:
        self._path, self._writer, self._clock, self._gates = path, writer, clock, gates
        self._moved: dict[str, Moved] = self._read()

    def _read(self) -> dict[str, Moved]:
        """A file that cannot be read costs the moves: the pods have the limits of their specs again."""
        try:
            return _decoded(self._path.read_bytes()) if self._path else {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("moved limits cannot be read, specs count path=%s error=%s", self._path, error)
            return {}

    @property
    def uids(self) -> Collection[str]:
        return self._moved.keys()

    def desired(self, pod: Pod) -> Pod:
        """The pod of the API as this node desires it; the same object where no limit of it was moved."""
        limits = self._limits(pod)
        return with_limits(pod, limits, self._gates) if limits else pod

    def conditions(self, pod: Pod) -> tuple[PodCondition, ...]:
        """What the status says of moved limits; nothing where there are none."""
        moved = self._moved.get(pod.metadata.uid)
        if moved is None or not self._limits(pod):
            return ()
        said = PodCondition(
            type=BURST,
            status="True",
            reason="LimitsMoved",
            message=moved.why,
            last_transition_time=moved.since,
            observed_generation=moved.generation,
        )
        return (said,)

    def _limits(self, pod: Pod) -> Limits:
        moved, ranges = self._moved.get(pod.metadata.uid), ranges_of(pod)
        if moved is None or moved.generation != pod.metadata.generation:
            return {}
        return {
            name: clamped
            for name, limits in moved.limits.items()
            if name in ranges and (clamped := _clamped(limits, ranges[name]))
        }

    async def put(self, pod: Pod, limits: Limits, why: str) -> None:
        """`pod` is the API's; earlier moves for the same generation stay beside. Raises CheckpointError."""
        uid = pod.metadata.uid
        before = self._moved.get(uid)
        kept = dict(before.limits) if before is not None and before.generation == pod.metadata.generation else {}
        for name, amounts in limits.items():
            kept[name] = {**kept.get(name, {}), **{resource: str(amount) for resource, amount in amounts.items()}}
        moved = Moved(pod.metadata.generation, kept, format_time(self._clock.now()), why)
        await self._save({**self._moved, uid: moved})

    async def forget(self, uids: Collection[str]) -> None:
        """Pods that are gone, or whose specs say by now what was moved."""
        if not self._moved.keys().isdisjoint(uids):
            await self._save({uid: moved for uid, moved in self._moved.items() if uid not in uids})

    def is_over(self, pod: Pod) -> bool:
        """Whether what was moved counts no more for this version of the pod."""
        moved = self._moved.get(pod.metadata.uid)
        return moved is not None and not self._limits(pod)

    async def _save(self, moved: dict[str, Moved]) -> None:
        if self._path is not None:
            write: Callable[[], None] = partial(write_atomic, self._path, msgspec.json.encode(moved))
            try:
                await self._writer.run(self._path, write)
            except OSError as error:
                raise CheckpointError(f"could not write {self._path}: {error.strerror or error}") from error
        self._moved = moved


def _decoded(content: bytes) -> dict[str, Moved]:
    """Raises ValueError."""
    try:
        found = msgspec.json.decode(content, type=dict[str, Moved])
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    for moved in found.values():
        for limits in moved.limits.values():
            for amount in limits.values():
                Quantity.parse(amount)
    return found


def _clamped(limits: Mapping[str, str], allowed: BurstRange) -> dict[str, Quantity]:
    return {
        name: min(Quantity.parse(amount), allowed.ceiling[name])
        for name, amount in limits.items()
        if name in allowed.ceiling
    }
