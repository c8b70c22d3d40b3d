"""Container log rotation: a file that is too large is set aside, and the runtime begins another.

    0.log                      written by the runtime
    0.log.20261123-030715      set aside, at most MOST_FILES - 1 of them; upstream compresses these, here they stay text

Every ten seconds the directories of this node's logs are looked at; the runtime is asked only about files that are too
large.
"""

import logging
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from podfit.core.clock import Clock
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import ContainerState

log = logging.getLogger(__name__)

MOST_BYTES = 10 << 20
MOST_FILES = 5
LOOK_SECONDS = 10.0


class LogRotation(msgspec.Struct, frozen=True):
    """`root` holds a directory for each pod, with one for each container; None where nothing writes logs."""

    runtime: Runtime
    root: Path | None
    writer: DiskWriter
    clock: Clock

    async def run(self) -> None:
        """Until cancelled; not at all without a root."""
        while self.root is not None:
            await self.clock.sleep(LOOK_SECONDS)
            try:
                large = await self.writer.run(self.root, partial(too_large, self.root))
                if large:
                    await self._rotate(large)
            except (CRIError, OSError) as error:
                log.warning("logs not rotated error=%s", error)

    async def _rotate(self, large: set[Path]) -> None:
        """Raises CRIError, OSError."""
        for container in await self.runtime.list_containers():
            if container.state is not ContainerState.RUNNING:
                continue
            status = await self.runtime.container_status(container.id)
            if Path(status.log_path) not in large:
                continue
            path, now = Path(status.log_path), self.clock.now()
            aside = await self.writer.run(path, partial(set_aside, path, now))
            try:
                await self.runtime.reopen_container_log(container.id)
            except CRIError:
                await self.writer.run(path, partial(put_back, path, aside))
                raise
            await self.writer.run(path, partial(prune, path))


def too_large(root: Path) -> set[Path]:
    """The logs below `root` that are to be set aside. Raises OSError."""
    found = set()
    for path in root.glob("*/*/*.log"):
        try:
            if path.lstat().st_size > MOST_BYTES:
                found.add(path)
        except FileNotFoundError:
            continue
    return found


def set_aside(path: Path, now: datetime) -> Path:
    """Where it is now. Raises OSError."""
    aside = path.with_name(f"{path.name}.{now:%Y%m%d-%H%M%S}")
    path.rename(aside)
    return aside


def put_back(path: Path, aside: Path) -> None:
    """The runtime still writes into the old file. Raises OSError."""
    if not path.exists():
        aside.rename(path)


def prune(path: Path) -> None:
    """The oldest of those set aside go. Raises OSError."""
    for old in sorted(rotated(path))[: -(MOST_FILES - 1)]:
        old.unlink(missing_ok=True)


def rotated(path: Path) -> Iterable[Path]:
    """What was set aside of a log."""
    return path.parent.glob(f"{path.name}.*")


def delete_log(path: Path) -> None:
    """With all that was set aside of it. Raises OSError."""
    for log in (path, *rotated(path)):
        log.unlink(missing_ok=True)
