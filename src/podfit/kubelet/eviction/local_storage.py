"""Local storage usage of pods: their volumes on this disk, and the logs of their containers."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.node.pod_load import NOTHING, LocalStorage, Used, is_local
from podfit.decide.pod.ephemeral_containers import every_container
from podfit.kubelet.disk.usage import usage
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.pods.configs import log_directory
from podfit.kubelet.runtime import labels
from podfit.kubelet.volumes.manager import HOSTNAME_FILE, HOSTS_FILE, MESSAGES, Volumes

OWN = (HOSTS_FILE, HOSTNAME_FILE, MESSAGES)
"""Of the kubelet's in a pod's directory: names in /etc and termination messages, which containers have mounted."""
MEASURE_SECONDS = 5.0
"""For one directory; what was not reached until then is not counted."""


class StorageMeter(msgspec.Struct, frozen=True):
    """`log_root` is None where nothing runs, so that nothing takes any disk."""

    volumes: Volumes
    log_root: Path | None
    writer: DiskWriter
    clock: Clock

    @property
    def measures(self) -> bool:
        return self.log_root is not None

    async def storage(self, pod: Pod, roots: Mapping[str, Used]) -> LocalStorage:
        """The storage with the writable layers that the runtime told. Raises OSError."""
        if self.log_root is None:
            return NOTHING
        uid, logs = pod.metadata.uid, log_directory(self.log_root, labels.ref(pod))
        home = self.volumes.pod_directory(uid)
        local = [volume for volume in pod.spec.volumes if is_local(volume)]
        return LocalStorage(
            roots=roots,
            logs={container.name: await self._used(logs / container.name) for container in every_container(pod)},
            volumes={volume.name: await self._used(self.volumes.volume_directory(uid, volume)) for volume in local},
            own={name: await self._used(home / name) for name in OWN},
        )

    async def _used(self, directory: Path) -> Used:
        """Raises OSError."""
        until = self.clock.monotonic() + MEASURE_SECONDS
        return await self.writer.run(directory, partial(usage, directory, lambda: self.clock.monotonic() > until))
