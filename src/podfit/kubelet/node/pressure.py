"""The pressure monitor: watches memory, disk and process numbers, and sets the node's pressure conditions.

Every ten seconds, as upstream's eviction manager. Pressure keeps pods and resizes out; who is evicted for it is decided
by what was seen last (`kubelet.eviction`).
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from podfit.core.clock import Clock
from podfit.decide.node.pressure import CALM, TRANSITION_SECONDS, Observation, Threshold
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups
from podfit.kubelet.node.machine import existing, meminfo, process_numbers

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
Observe: TypeAlias = Callable[[], Mapping[str, Observation]]
"""By signal."""


def observe_nothing() -> Mapping[str, Observation]:
    """The observation of a node that is not a machine."""
    return {}


class MemoryShare(msgspec.Struct, frozen=True):
    """A node that has a part of the machine's memory: the `limit` of a cgroup, in bytes."""

    cgroups: Cgroups
    path: str
    limit: int

    def left(self) -> Observation:
        """Raises CgroupError."""
        return Observation(max(0, self.limit - (self.cgroups.working_set(self.path) or 0)), self.limit)


class MachineSignals:
    """What this machine has left. `nodefs` holds the kubelet's directory, `imagefs` the runtime's; without a `share`
    all memory is the node's.
    """

    def __init__(self, *, nodefs: Path, imagefs: Path, share: MemoryShare | None = None) -> None:
        self._places, self._share = {"nodefs": nodefs, "imagefs": imagefs}, share

    def __call__(self) -> Mapping[str, Observation]:
        """Raises OSError, CgroupError."""
        left = self._share.left() if self._share is not None else memory(meminfo())
        found = {"memory.available": left, "pid.available": _processes()}
        for name, path in self._places.items():
            place = existing(path)
            disk, device = os.statvfs(place), place.stat().st_dev
            size, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
            found[f"{name}.available"] = Observation(free, size, device)
            if disk.f_files:
                found[f"{name}.inodesFree"] = Observation(disk.f_favail, disk.f_files, device)
        return found


def memory(info: Mapping[str, str]) -> Observation:
    """Free memory, and file cache that nobody has used for a while: what upstream's working set leaves."""
    total, free, idle = (int(info[name].split()[0]) * 1024 for name in ("MemTotal", "MemFree", "Inactive(file)"))
    return Observation(free + idle, total)


def _processes() -> Observation:
    most = process_numbers()
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return Observation(most - running, most)


class PressureMonitor:
    """`look` once before the first pod; `run` until cancelled. `changed` is set when the conditions changed."""

    def __init__(
        self, observe: Observe, thresholds: Iterable[Threshold], *, clock: Clock, transition: float = TRANSITION_SECONDS
    ) -> None:
        self._observe, self._clock, self._transition = observe, clock, transition
        self.thresholds = tuple(thresholds)
        self.seen: Mapping[str, Observation] = {}
        """By the last look."""
        self.changed = asyncio.Event()
        self._state = CALM

    @property
    def conditions(self) -> tuple[str, ...]:
        """Such as `DiskPressure`."""
        return self._state.conditions

    def look(self) -> None:
        before = self.conditions
        try:
            seen = self._observe()
        except (OSError, CgroupError) as error:
            log.warning("cannot see what is left of the node error=%s", error)
            return
        self.seen = seen
        self._state = self._state.look(self.thresholds, seen, self._clock.monotonic(), transition=self._transition)
        if self.conditions != before:
            log.warning("node pressure conditions=%s before=%s", self.conditions, before)
            self.changed.set()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            self.look()
