"""The state of a simulated runtime, and the methods by which a test or a load changes it.

Containers have a cgroup in memory each: what is used beyond its memory limit ends the container as the kernel would.
"""

import asyncio
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from msgspec.structs import replace

from podfit.core.clock import Clock, Timer
from podfit.decide.lifecycle.facts import ContainerState, ContainerStatus, LinuxResources, SandboxStatus
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.cgroup.protocol import CgroupConfig, CgroupError
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.errors import CRIError, NotFound
from podfit.kubelet.runtime.types import ContainerEvent, ContainerStats, EventKind

NANO = 1_000_000_000
OOM_CODE, KILLED = 137, 137
T = TypeVar("T", bound=tuple[Any, ...])


class SimulatedState:
    def __init__(self, clock: Clock, cgroups: MemoryCgroups) -> None:
        self._clock = clock
        self._cgroups = cgroups
        self._ids = itertools.count(1)
        self._sandboxes: ByPod[tuple[SandboxStatus, SandboxConfig]] = ByPod()
        self._containers: ByPod[tuple[ContainerStatus, ContainerConfig, str]] = ByPod()
        self._timers: dict[str, Timer] = {}
        self._burned: dict[str, int] = {}
        self._burning: dict[str, tuple[int, float]] = {}
        self.unready: set[str] = set()
        """Ids of containers whose readiness probe fails."""
        self.faults: dict[str, CRIError] = {}
        self.delays: dict[str, float] = {}
        self._listeners: dict[asyncio.Queue[ContainerEvent], None] = {}  # in the order in which they began

    async def _may(self, call: str) -> None:
        for name in (call, "*"):
            if delay := self.delays.get(name):
                await (self._clock.sleep(delay) if delay < math.inf else asyncio.Event().wait())
            if fault := self.faults.get(name):
                raise fault

    def end(self, container_id: str, code: int, *, reason: str = "") -> None:
        """The container ends by itself, or is killed for the reason."""
        status = self._status(container_id)
        if status.state is not ContainerState.RUNNING:
            return
        if timer := self._timers.pop(container_id, None):
            timer.cancel()
        self._burned[container_id] = self._cpu_usage(container_id)
        self._burning.pop(container_id, None)
        reason = reason or ("Completed" if code == 0 else "Error")
        now = self._now()
        self._change(container_id, state=ContainerState.EXITED, exit_code=code, reason=reason, finished_at=now)
        self._cgroups.remove(self._path(container_id))
        self._tell(container_id, EventKind.STOPPED)

    def use(self, container_id: str, memory: int) -> None:
        """The container now uses so many bytes; more than its limit and the OOM killer ends it."""
        path = self._path(container_id)
        limit = self._cgroups.read_memory(path)
        self._cgroups.usage[path] = memory
        if limit is not None and memory > limit:
            self.end(container_id, OOM_CODE, reason="OOMKilled")

    def use_cpu(self, container_id: str, cores: float) -> None:
        """The container now uses so much CPU, as far as its quota lets it."""
        values = self._cgroups.read_cpu(self._path(container_id))
        most = values.quota / values.period if values.quota and values.quota > 0 else cores
        self._burned[container_id] = self._cpu_usage(container_id)
        self._burning[container_id] = (self._elapsed(), min(cores, most))

    def containers(self) -> tuple[ContainerStatus, ...]:
        return tuple(status for status, _, _ in self._containers.values())

    def _tell(self, container_id: str, kind: EventKind) -> None:
        for queue in self._listeners:
            queue.put_nowait(ContainerEvent(container_id=container_id, kind=kind))

    def _apply(self, container_id: str, resources: LinuxResources) -> None:
        """What runc would do to the container's cgroup, refusals included."""
        path = self._path(container_id)
        try:
            if resources.cpu_shares:
                self._cgroups.set_cpu_shares(path, resources.cpu_shares)
            if resources.cpu_quota:
                self._cgroups.set_cpu_limit(path, quota=resources.cpu_quota, period=resources.cpu_period or 100_000)
            if resources.memory_limit:
                self._cgroups.set_memory_limit(path, resources.memory_limit)
        except CgroupError as error:
            raise CRIError(f"cannot update container {container_id}: {error}") from error
        limit = self._cgroups.read_memory(path)
        if limit is not None and (self._cgroups.memory_usage(path) or 0) > limit:
            self.end(container_id, OOM_CODE, reason="OOMKilled")

    def _status(self, container_id: str) -> ContainerStatus:
        if container_id not in self._containers:
            raise NotFound(f"no container {container_id}")
        return self._containers[container_id][0]

    def _sandbox(self, sandbox_id: str) -> SandboxStatus:
        if sandbox_id not in self._sandboxes:
            raise NotFound(f"no sandbox {sandbox_id}")
        return self._sandboxes[sandbox_id][0]

    def _remove(self, container_id: str) -> None:
        if container_id in self._containers:
            self.end(container_id, KILLED)
            del self._containers[container_id]
            self.unready.discard(container_id)
            self._tell(container_id, EventKind.DELETED)

    def _stats(self, container_id: str) -> ContainerStats:
        status = self._status(container_id)
        running = status.state is ContainerState.RUNNING
        used = self._cgroups.memory_usage(self._path(container_id)) if running else 0
        return ContainerStats(
            id=container_id,
            name=status.name,
            labels=status.labels,
            timestamp=self._now(),
            cpu_usage=self._cpu_usage(container_id),
            memory_usage=used,
            memory_working_set=used,
        )

    def _cpu_usage(self, container_id: str) -> int:
        """Nanoseconds of CPU used so far."""
        since, cores = self._burning.get(container_id, (self._elapsed(), 0.0))
        return self._burned.get(container_id, 0) + int((self._elapsed() - since) * cores)

    def _change(self, container_id: str, **changes: Any) -> None:
        status, config, owner = self._containers[container_id]
        self._containers[container_id] = replace(status, **changes), config, owner

    def _path(self, container_id: str) -> str:
        owner = self._containers[container_id][2]
        return f"{self._sandboxes[owner][1].cgroup_parent}/{container_id}"

    def _inside(self, sandbox_id: str) -> list[str]:
        return [key for key, (_, _, owner) in self._containers.items() if owner == sandbox_id]

    def _elapsed(self) -> int:
        return int(self._clock.monotonic() * NANO)

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * NANO)


class ByPod(MutableMapping[str, T]):
    """Sandboxes or containers by id, and by the pod that their labels name: nearly every list asks for one pod's."""

    def __init__(self) -> None:
        self._all: dict[str, T] = {}
        self._of: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def labelled(self, wanted: Mapping[str, str]) -> list[T]:
        """Those with all of these labels."""
        uid = wanted.get(labels.POD_UID)
        among = self._all.values() if uid is None else [self._all[name] for name in self._of.get(uid, ())]
        return [entry for entry in among if wanted.items() <= entry[0].labels.items()]

    def __getitem__(self, name: str) -> T:
        return self._all[name]

    def __setitem__(self, name: str, entry: T) -> None:
        self._all[name] = entry
        self._of[_pod(entry)][name] = None

    def __delitem__(self, name: str) -> None:
        uid = _pod(self._all.pop(name))
        self._of[uid].pop(name)
        if not self._of[uid]:
            del self._of[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _pod(entry: tuple[Any, ...]) -> str:
    return str(entry[0].labels.get(labels.POD_UID, ""))


def group_of(resources: LinuxResources) -> CgroupConfig:
    return CgroupConfig(
        cpu_shares=resources.cpu_shares or None,
        cpu_quota=resources.cpu_quota or None,
        cpu_period=resources.cpu_period or 100_000,
        memory_limit=resources.memory_limit or None,
    )
