"""Files of the kubelet's own for a pod: names in /etc, the places of termination messages, directories for logs."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.randomness import Random
from podfit.decide.pod.naming import hostname_of, hosts_file
from podfit.decide.pod.resolver import DOMAIN
from podfit.kubelet.disk.files import new_file, write_in_place
from podfit.kubelet.disk.safe_paths import component, make_directory
from podfit.kubelet.runtime.configs import Mount
from podfit.kubelet.sources.names import NodeNames
from podfit.kubelet.volumes.manager import HOSTNAME_FILE, HOSTS_FILE, MESSAGES, Volumes

HOSTS, HOSTNAME = "/etc/hosts", "/etc/hostname"


class OwnFiles(msgspec.Struct, frozen=True):
    """`address` is the node's, `domain` the cluster's. One of each in /etc for all containers of a pod, written anew
    with each start.
    """

    volumes: Volumes
    names: NodeNames
    random: Random
    address: str
    domain: str = DOMAIN

    async def mounts(self, pod: Pod, taken: Collection[str], *, shared: bool) -> tuple[Mount, ...]:
        """Mounts of those places in /etc that no volume has `taken`; `shared`: the pod is on the node's network. Raises
        OSError."""
        texts = {}
        if HOSTS not in taken:
            node_hosts = await self.names.hosts_file() if shared else ""
            text = hosts_file(pod, node_hosts, pod.status.pod_ip or self.address, shared=shared, domain=self.domain)
            texts[HOSTS] = (HOSTS_FILE, text)
        if HOSTNAME not in taken and (name := hostname_of(pod, self.domain)):
            texts[HOSTNAME] = (HOSTNAME_FILE, f"{name}\n")
        return tuple(
            [
                Mount(container_path=place, host_path=str(await self._written(pod, file, text)))
                for place, (file, text) in texts.items()
            ]
        )

    async def pod_logs(self, directory: Path) -> None:
        """Make the directory for the logs of a pod. Raises OSError."""

        def make() -> None:
            directory.parent.mkdir(parents=True, exist_ok=True)
            make_directory(directory.parent, component(directory.name))

        await self.volumes.writer.run(directory, make)

    async def container_logs(self, directory: Path, name: str) -> None:
        """Make the one for a container in that of its pod. Raises Outside, OSError."""
        await self.volumes.writer.run(directory, partial(make_directory, directory, component(name)))

    async def message(self, pod: Pod, container: Container) -> Path | None:
        """A new and empty file; None where nothing would write it. Raises OSError."""
        uid = pod.metadata.uid

        def make() -> Path:
            directory = self.volumes.make_directory(uid, MESSAGES, container.name)
            return new_file(directory / self.random.uuid()[:8], mode=0o666)

        return await self.volumes.writer.run(self.volumes.pod_directory(uid) / MESSAGES / container.name, make)

    async def _written(self, pod: Pod, file: str, text: str) -> Path:
        path = self.volumes.pod_directory(pod.metadata.uid) / file
        await self.volumes.writer.run(path, partial(self._write, pod, path, text))
        return path

    def _write(self, pod: Pod, path: Path, text: str) -> None:
        self.volumes.make_directory(pod.metadata.uid)
        write_in_place(path, text.encode(), mode=0o644)


class NoFiles(OwnFiles, frozen=True):
    """The files of a simulated node, where nothing runs that could read or write any."""

    async def mounts(self, pod: Pod, taken: Collection[str], *, shared: bool) -> tuple[Mount, ...]:
        return ()

    async def pod_logs(self, directory: Path) -> None:
        """The simulated runtime makes its own."""

    async def container_logs(self, directory: Path, name: str) -> None:
        """The simulated runtime makes its own."""

    async def message(self, pod: Pod, container: Container) -> Path | None:
        return None
