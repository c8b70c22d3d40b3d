"""The shared CPU pool: keeps every container without exclusive CPUs on what is left.

The pool shrinks when a container gets CPUs of its own and grows when it gives them back. Whoever starts such a
container waits for `settle` first, so that its CPUs are empty when it begins; upstream leaves the others there for up
to ten seconds. A look every ten seconds stays as the safety net.
"""

import asyncio
import logging

from podfit.core.clock import Clock
from podfit.decide.lifecycle.facts import ContainerState, LinuxResources
from podfit.decide.managers.cpu import Assignments, BadCpuSet, parse, show
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import Container

log = logging.getLogger(__name__)

RECONCILE_SECONDS = 10.0
_PINNABLE = (ContainerState.CREATED, ContainerState.RUNNING)


class SharedPool:
    """`run` until cancelled; it ends at once when nobody is pinned."""

    def __init__(self, runtime: Runtime, managers: ResourceManagers, *, node: str, clock: Clock) -> None:
        self._runtime, self._managers = runtime, managers
        self._node, self._clock = node, clock
        self._applied: dict[str, str] = {}
        self._busy = asyncio.Lock()

    async def recover(self) -> None:
        """After damage: see what the containers that run are pinned to. Before pods are admitted."""
        if not self._managers.lost:
            return
        try:
            self._managers.seen(await self._pinned())
        except CRIError as error:
            log.warning("cannot see which CPUs are taken error=%s", error)

    async def run(self) -> None:
        changed = self._managers.changed
        while self._managers.pinning:
            changed.clear()
            await self.settle()
            timer = self._clock.call_later(RECONCILE_SECONDS, changed.set)
            try:
                await changed.wait()
            finally:
                timer.cancel()

    async def make_way(self, uid: str, container: str) -> None:
        """Before a container is created: nobody else is left on its CPUs, if it is to have them alone."""
        cpus = self._managers.cpus
        if cpus is not None and cpus.of(uid, container) is not None:
            await self.settle()

    async def settle(self) -> None:
        """Move who is on other CPUs than it may use. What fails is tried again."""
        if not self._managers.pinning:
            return
        async with self._busy:
            try:
                await self._managers.flush()
                for container in await self._containers():
                    await self._move(container)
            except (CRIError, CheckpointError) as error:
                log.warning("cannot keep containers on their CPUs error=%s", error)

    async def _move(self, container: Container) -> None:
        cpus = show(self._managers.cpuset(container.labels[labels.POD_UID], container.name))
        if self._applied.get(container.id) == cpus:
            return
        try:
            await self._runtime.update_container_resources(container.id, LinuxResources(cpuset_cpus=cpus))
        except CRIError as error:
            log.warning("cannot move container id=%s cpus=%s error=%s", container.id, cpus, error)
        else:
            self._applied[container.id] = cpus

    async def _containers(self) -> list[Container]:
        """Those of this node that run or are about to; what is remembered of others is forgotten."""
        ours = {
            sandbox.id
            for sandbox in await self._runtime.list_sandboxes()
            if sandbox.labels.get(labels.NODE) == self._node
        }
        found = [
            container
            for container in await self._runtime.list_containers()
            if container.sandbox_id in ours and container.state in _PINNABLE and labels.POD_UID in container.labels
        ]
        self._applied = {
            container.id: self._applied[container.id] for container in found if container.id in self._applied
        }
        return found

    async def _pinned(self) -> Assignments:
        pinned: dict[str, dict[str, frozenset[int]]] = {}
        for container in await self._containers():
            resources = (await self._runtime.container_status(container.id)).resources
            try:
                cpus = parse(resources.cpuset_cpus) if resources is not None else frozenset[int]()
            except BadCpuSet:
                continue
            if cpus:
                pinned.setdefault(container.labels[labels.POD_UID], {})[container.name] = cpus
        return _apart(pinned)


def _apart(pinned: dict[str, dict[str, frozenset[int]]]) -> Assignments:
    """Only sets that meet no other one: the pool is what several containers are on."""
    everyone = [cpus for by_container in pinned.values() for cpus in by_container.values()]
    return {
        uid: alone
        for uid, by_container in pinned.items()
        if (
            alone := {
                name: cpus for name, cpus in by_container.items() if sum(bool(cpus & other) for other in everyone) == 1
            }
        )
    }
