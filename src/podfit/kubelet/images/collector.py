"""The image garbage collector. Which images go is decided in `decide.node.image_gc`.

Every five minutes, as upstream's image manager; at once when the node runs short of disk (`free_unused`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from podfit.core.clock import Clock
from podfit.decide.node.image_gc import (
    ImagePolicy,
    ImageRecord,
    Records,
    StoredImage,
    look,
    not_enough,
    removable,
    to_free,
    too_old,
)
from podfit.decide.node.pressure import Observation
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.images import BUILT_IN
from podfit.kubelet.runtime.labels import IMAGE_VOLUMES
from podfit.kubelet.runtime.protocol import Runtime

log = logging.getLogger(__name__)

LOOK_SECONDS = 300.0
IMAGE_GC_FAILED, FREE_DISK_SPACE_FAILED, INVALID_CAPACITY = (
    "ImageGCFailed",
    "FreeDiskSpaceFailed",
    "InvalidDiskCapacity",
)


class CollectionFailed(Exception):
    """Too little could be removed; the text is for an event."""


class ImageCollector:
    """`disk` answers what the images' file system has, None where nobody knows; `tell` records an event of the node."""

    def __init__(
        self,
        runtime: Runtime,
        policy: ImagePolicy,
        *,
        clock: Clock,
        disk: Callable[[], Observation | None],
        tell: Callable[[str, str, str], None],
    ) -> None:
        self._runtime, self._policy, self._clock, self._disk, self._tell = runtime, policy, clock, disk, tell
        self._records: Records | None = None
        self._began = clock.monotonic()
        self._failed = False
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.collect()
            await self._clock.sleep(LOOK_SECONDS)

    async def collect(self) -> None:
        """What the policy says. An event tells of the second failure in a row and those after it."""
        disk = self._disk()
        if disk is None:
            return
        try:
            async with self._turn:
                await self._collect(disk)
        except (CRIError, CollectionFailed) as error:
            log.warning("images not collected error=%s", error)
            if self._failed:
                self._tell("Warning", IMAGE_GC_FAILED, str(error))
            self._failed = True
        else:
            self._failed = False

    async def free_unused(self) -> int:
        """Remove every image that may go; answers how many bytes that gave. Raises CRIError, CollectionFailed."""
        async with self._turn:
            records = await self._look()
            return await self._remove(removable(records, self._policy, self._clock.monotonic()), None)

    async def _collect(self, disk: Observation) -> None:
        """Raises CRIError, CollectionFailed."""
        records = await self._look()
        old = too_old(records, self._policy, self._clock.monotonic(), self._began)
        await self._remove(old, None)
        if not disk.capacity:
            text = "invalid capacity 0 on image filesystem"
            self._tell("Warning", INVALID_CAPACITY, text)
            raise CollectionFailed(text)
        wanted = to_free(disk, self._policy)
        if not wanted:
            return
        gone = {record.image.id for record in old}
        candidates = removable(records, self._policy, self._clock.monotonic())
        freed = await self._remove([record for record in candidates if record.image.id not in gone], wanted)
        if freed < wanted:
            text = not_enough(disk, freed)
            self._tell("Warning", FREE_DISK_SPACE_FAILED, text)
            raise CollectionFailed(text)

    async def _look(self) -> Records:
        """Raises CRIError."""
        images, containers = await self._runtime.list_images(), await self._runtime.list_containers()
        named = {name for container in containers for name in (container.image_id, container.image) if name}
        for container in containers:
            named.update(container.annotations.get(IMAGE_VOLUMES, "").split())
        used = {image.id for image in images if not named.isdisjoint((image.id, *image.tags, *image.digests))}
        stored = (
            StoredImage(image.id, image.size, image.pinned or not BUILT_IN.keys().isdisjoint(image.tags))
            for image in images
        )
        self._records = look(self._records, stored, used, self._clock.monotonic())
        return self._records

    async def _remove(self, candidates: Iterable[ImageRecord], wanted: int | None) -> int:
        """One after the other until `wanted` bytes are free; None is all of them. Raises CollectionFailed at the end
        when the runtime refused one.
        """
        freed, refused = 0, []
        for record in candidates:
            if wanted is not None and freed >= wanted:
                break
            try:
                await self._runtime.remove_image(record.image.id)
            except CRIError as error:
                refused.append(str(error))
                continue
            log.info("image removed id=%s bytes=%d", record.image.id, record.image.size)
            freed += record.image.size
        if refused:
            goal = "all unused images" if wanted is None else f"{wanted} bytes"
            problems = "; ".join(refused)
            raise CollectionFailed(
                f"wanted to free {goal}, but freed {freed} bytes space with errors in image deletion: {problems}"
            )
        return freed
