"""Cleaning up after pods that nobody speaks for any more: their objects were deleted while this node was down.

What is ours is known by the node's label on sandboxes, by our part of the cgroup tree and by our directory.
"""

import asyncio
import logging
import shutil
from collections.abc import Collection
from functools import partial
from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.core.clock import Clock
from podfit.decide.lifecycle.facts import ContainerState
from podfit.kubelet.actuation.actuator import Actuator
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups
from podfit.kubelet.cgroup.removal import remove_cgroup
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.pods.known_pods import AllocatedPods, KnownPods
from podfit.kubelet.pods.runtime_facts import observe, owned
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError, Unavailable
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.volumes.manager import Volumes

log = logging.getLogger(__name__)

SWEEP_SECONDS = 60.0
SHUTDOWN_GRACE = 2
"""Seconds that containers get when the whole node is taken down."""
TRIES, TRY_SECONDS = 20, 0.1


class Housekeeper(msgspec.Struct, frozen=True):
    runtime: Runtime
    cgroups: Cgroups
    volumes: Volumes
    config: KubeletConfig
    clock: Clock
    actuator: Actuator
    known: KnownPods
    informer: Informer[Pod]
    pods: AllocatedPods

    async def run(self) -> None:
        """Until cancelled: what nobody speaks for is removed, and the QoS tiers are brought up to date."""
        while True:
            await self._sweep()
            try:
                self.actuator.cgroups.refresh_tiers(self.pods.active())
            except CgroupError as error:
                log.warning("cannot refresh the QoS tiers error=%s", error)
            await self.clock.sleep(SWEEP_SECONDS)

    def _wanted(self) -> set[str]:
        """The uids of pods that somebody speaks for. Asked after each listing: pods come while something is removed,
        and a pod that was listed and is not wanted by then never will be."""
        return self.known.uids() | {pod.metadata.uid for pod in self.informer.list()}

    async def _sweep(self) -> None:
        """Remove everything of pods that are not wanted. What fails is tried again at the next sweep."""
        try:
            present = owned(await self.runtime.list_sandboxes(), self.config.name)
        except CRIError as error:
            log.warning("cannot look for orphaned pods error=%s", error)
            return
        wanted = self._wanted()
        for uid, pod in present.items():
            if uid not in wanted:
                log.info("removing orphaned pod pod=%s", pod)
                await self._remove(uid)
        await self._sweep_logs()
        for uid in self.volumes.known() - self._wanted():
            await self._remove_volumes(uid)
        cgroups, wanted = self.cgroups.list_pods(), self._wanted()
        for cgroup in cgroups:
            if cgroup.uid not in wanted:
                # A runtime that is killed while it makes a sandbox forgets its processes, and will never end them.
                await self._remove_cgroup(cgroup.path, kill=cgroup.uid not in present)

    async def take_down(self) -> None:
        """Stop and remove every pod of this node, its cgroup tree and its mounts; pod directories and logs stay."""
        try:
            present = owned(await self.runtime.list_sandboxes(), self.config.name)
        except CRIError as error:
            log.warning("cannot ask the runtime which pods are left error=%s", error)
            present = {}
        await asyncio.gather(*(self._remove_at_last(uid) for uid in present))
        self.volumes.mounter.unmount_below(self.volumes.root / "pods")
        for tree in self.cgroups.layout.trees:
            await self._remove_cgroup(tree)

    async def _remove_at_last(self, uid: str) -> None:
        """A removal that was under way when its worker was told to go is still under way in the runtime. Until it is
        done a second one is refused, or finds nothing more to do.
        """
        for _ in range(TRIES):
            try:
                await self._try_remove(uid, SHUTDOWN_GRACE)
                if uid not in owned(await self.runtime.list_sandboxes(), self.config.name):
                    return
            except Unavailable:
                break
            except CRIError as error:
                log.debug("pod not removed yet uid=%s error=%s", uid, error)
            await self.clock.sleep(TRY_SECONDS)
        await self._remove(uid, SHUTDOWN_GRACE)

    async def _remove(self, uid: str, grace: int | None = None) -> None:
        try:
            await self._try_remove(uid, grace)
        except CRIError as error:
            log.warning("cannot remove pod uid=%s error=%s", uid, error)

    async def _try_remove(self, uid: str, grace: int | None) -> None:
        """Raises CRIError."""
        facts = await observe(self.runtime, uid)
        await asyncio.gather(
            *(
                self.runtime.stop_container(
                    container.id, grace_seconds=grace if grace is not None else labels.grace_of(container.annotations)
                )
                for container in facts.containers
                if container.state is ContainerState.RUNNING
            )
        )
        for sandbox in facts.sandboxes:
            await self.runtime.stop_sandbox(sandbox.id)
            await self.runtime.remove_sandbox(sandbox.id)

    async def _remove_cgroup(self, path: str, *, kill: bool = False) -> None:
        try:
            await remove_cgroup(self.cgroups, path, self.clock.sleep, kill=kill)
        except CgroupError as error:
            log.warning("cannot remove cgroup path=%s error=%s", path, error)

    async def _remove_volumes(self, uid: str) -> None:
        try:
            await self.volumes.remove(uid)
        except OSError as error:
            log.warning("cannot remove volumes uid=%s error=%s", uid, error)

    async def _sweep_logs(self) -> None:
        root, writer = self.config.log_root, self.volumes.writer
        try:
            directories = await writer.run(root, partial(_directories, root))
            wanted = self._wanted()
            orphaned = [path for path in directories if path.name.rpartition("_")[2] not in wanted]
            if orphaned:
                await writer.run(root, partial(_remove_all, orphaned))
        except OSError as error:
            log.warning("cannot remove logs of orphaned pods error=%s", error)


def _directories(root: Path) -> list[Path]:
    return list(root.iterdir()) if root.exists() else []


def _remove_all(directories: Collection[Path]) -> None:
    for path in directories:
        shutil.rmtree(path, ignore_errors=True)
