"""Reclaims node resources before a pod is evicted: dead containers, and unused images."""

import logging
from functools import partial
from pathlib import Path

import msgspec

from podfit.decide.lifecycle.facts import ContainerState
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.images.collector import CollectionFailed, ImageCollector
from podfit.kubelet.pods.known_pods import KnownPods
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.log_rotation import delete_log
from podfit.kubelet.runtime.protocol import Runtime

log = logging.getLogger(__name__)


class Reclaimer(msgspec.Struct, frozen=True):
    runtime: Runtime
    known: KnownPods
    images: ImageCollector
    writer: DiskWriter

    async def reclaim(self) -> None:
        """Reclaims as much as can be had; what fails is logged, and tried again when it is asked for again."""
        for reclaim in (self._containers, self.images.free_unused):
            try:
                await reclaim()
            except (CRIError, CollectionFailed, OSError) as error:
                log.warning("not all that is unused could be removed error=%s", error)

    async def _containers(self) -> None:
        """Containers of pods that have ended and are still in the API; with their logs. Raises CRIError, OSError."""
        active = {pod.metadata.uid for pod in self.known.active()}
        ended = self.known.uids() - active
        for container in await self.runtime.list_containers():
            if container.state is not ContainerState.EXITED or container.labels.get(labels.POD_UID) not in ended:
                continue
            status = await self.runtime.container_status(container.id)
            await self.runtime.remove_container(container.id)
            log.info("ended container removed id=%s name=%s", container.id, container.name)
            if status.log_path:
                await self.writer.run(Path(status.log_path), partial(delete_log, Path(status.log_path)))
