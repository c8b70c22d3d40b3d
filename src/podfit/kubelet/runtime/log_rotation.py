"""Container log rotation: a file that is too large is set aside, and the runtime begins another.

    0.log                      written by the runtime
    0.log.20261123-030715      set aside, at most MOST_FILES - 1 of them; upstream compresses these, here they stay text

Every ten seconds the directories of this node's logs are looked at; the runtime is asked only about files that are too
large.
"""

import logging
import os
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from podfit.core.clock import Clock
from podfit.decide.lifecycle.facts import ContainerState
from podfit.kubelet.disk.safe_paths import own_directory, reachable
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime

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
        """What goes wrong with one log is no reason to leave the others. Raises CRIError."""
        for container in await self.runtime.list_containers():
            if container.state is not ContainerState.RUNNING:
                continue
            try:
                await self._rotate_of(container.id, large)
            except (CRIError, OSError) as error:
                log.warning("log not rotated container=%s error=%s", container.id, error)

    async def _rotate_of(self, container_id: str, large: set[Path]) -> None:
        """Raises CRIError, OSError."""
        path = Path((await self.runtime.container_status(container_id)).log_path)
        if path not in large:
            return
        aside = await self.writer.run(path, partial(set_aside, path, self.clock.now()))
        try:
            await self.runtime.reopen_container_log(container_id)
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
    """Where it is now. Raises OSError, also where a directory of the log has been replaced by a link."""
    aside = path.with_name(f"{path.name}.{now:%Y%m%d-%H%M%S}")
    with own_directory(path) as directory:
        os.rename(path.name, aside.name, src_dir_fd=directory, dst_dir_fd=directory)
    return aside


def put_back(path: Path, aside: Path) -> None:
    """The runtime still writes into the old file. Raises OSError."""
    with own_directory(path) as directory:
        if path.name not in os.listdir(reachable(directory)):
            os.rename(aside.name, path.name, src_dir_fd=directory, dst_dir_fd=directory)


def prune(path: Path) -> None:
    """The oldest of those set aside go. Raises OSError."""
    with own_directory(path) as directory:
        for name in _rotated(path, directory)[: -(MOST_FILES - 1)]:
            _delete(name, directory)


def rotated(path: Path) -> list[Path]:
    """What was set aside of a log, oldest first. Raises OSError."""
    with own_directory(path) as directory:
        return [path.with_name(name) for name in _rotated(path, directory)]


def delete_log(path: Path) -> None:
    """Deletes it with all that was set aside of it; nothing where there is no directory. Raises OSError."""
    try:
        with own_directory(path) as directory:
            for name in (path.name, *_rotated(path, directory)):
                _delete(name, directory)
    except FileNotFoundError:
        return


def _rotated(path: Path, directory: int) -> list[str]:
    return sorted(name for name in os.listdir(reachable(directory)) if name.startswith(f"{path.name}."))


def _delete(name: str, directory: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
