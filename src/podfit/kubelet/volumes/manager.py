"""The volumes of the pods on this node: made before the containers, refreshed once a minute, removed with the pod.

    <root>/pods/<uid>/volumes/kubernetes.io~<kind>/<name>

A source that podfit cannot mount is refused by name. Everything can be repeated: what is there already is kept.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from podfit.api import codec
from podfit.api.core.containers import Container, VolumeMount
from podfit.api.core.pods import Pod
from podfit.api.core.volumes import Volume
from podfit.core.errors import ApiError
from podfit.kubelet.pods.environment import expand
from podfit.kubelet.pods.fields import Unsupported
from podfit.kubelet.pods.lookup import Missing
from podfit.kubelet.runtime.types import Mount, Propagation
from podfit.kubelet.volumes.atomic import write_payload
from podfit.kubelet.volumes.host_path import prepare
from podfit.kubelet.volumes.mounter import Mounter
from podfit.kubelet.volumes.payloads import Payloads

_PROPAGATION: Mapping[str, Propagation] = {"HostToContainer": "host-to-container", "Bidirectional": "bidirectional"}

Paths = Mapping[str, Path]
"""Where each volume is on the host, by its name."""


class MountError(Exception):
    """A volume that is not there yet; the text is that of the FailedMount event."""


class Volumes(msgspec.Struct, frozen=True):
    root: Path
    payloads: Payloads
    mounter: Mounter
    now: Callable[[], datetime]

    async def mount(self, pod: Pod, *, again: bool = False) -> Paths:
        """Make every volume, or refresh it. Raises MountError for the first that cannot be had."""
        return {volume.name: await self._mount(pod, volume, again=again) for volume in pod.spec.volumes}

    def remove(self, uid: str) -> None:
        """Unmount and delete everything of a pod, messages of its containers too. Raises OSError."""
        self.payloads.tokens.forget(uid)
        home = self.pod_directory(uid)
        if home.exists():
            self.mounter.unmount_below(home)
            shutil.rmtree(home)

    def pod_directory(self, uid: str) -> Path:
        return self.root / "pods" / uid

    def known(self) -> set[str]:
        """The pods that have a directory, wanted or orphaned."""
        try:
            return {path.name for path in (self.root / "pods").iterdir()}
        except FileNotFoundError:
            return set()

    async def _mount(self, pod: Pod, volume: Volume, *, again: bool) -> Path:
        try:
            if volume.host_path is not None:
                path = Path(volume.host_path.path)
                problem = prepare(path, volume.host_path.type or "")
                if problem:
                    raise MountError(_text(volume, problem))
                return path
            return await self._in_pod_directory(pod, volume, again=again)
        except (Missing, Unsupported, ApiError, OSError) as error:
            raise MountError(_text(volume, str(error))) from error

    async def _in_pod_directory(self, pod: Pod, volume: Volume, *, again: bool) -> Path:
        kind, in_memory, size = _kind(volume)
        path = self.pod_directory(pod.metadata.uid).joinpath("volumes", f"kubernetes.io~{kind}", volume.name)
        payload = await self.payloads.of(pod, volume, recent=again)
        new = not path.exists()
        if new:
            path.mkdir(parents=True, exist_ok=True)
        if in_memory:
            self.mounter.tmpfs(path, size=size)
        if new:
            path.chmod(0o777)
        if payload is not None:
            write_payload(path, payload, now=self.now(), own=self.mounter.own)
        return path


def container_mounts(pod: Pod, container: Container, paths: Paths, environment: Mapping[str, str]) -> tuple[Mount, ...]:
    """What the runtime has to mount into one container. Raises Unsupported for a sub-path that leaves its volume."""
    return tuple(_container_mount(each, paths, environment) for each in container.volume_mounts)


def _container_mount(mount: VolumeMount, paths: Paths, environment: Mapping[str, str]) -> Mount:
    if mount.name not in paths:
        raise Unsupported(f'volume mount "{mount.name}" has no volume')
    sub_path = expand(mount.sub_path_expr, environment) if mount.sub_path_expr else mount.sub_path
    host = _inside(paths[mount.name], sub_path) if sub_path else paths[mount.name]
    return Mount(
        container_path=mount.mount_path, host_path=str(host), readonly=mount.read_only,
        propagation=_PROPAGATION.get(mount.mount_propagation or "", "private"))


def _inside(volume: Path, sub_path: str) -> Path:
    """A path below the volume, made as a directory when missing; links must not lead out."""
    base = volume.resolve()
    target = (base / sub_path).resolve()
    if os.path.isabs(sub_path) or not target.is_relative_to(base):
        raise Unsupported(f"subPath {sub_path!r} is outside of its volume")
    if not target.exists():
        target.mkdir(mode=0o755, parents=True)
    return target


def _kind(volume: Volume) -> tuple[str, bool, int | None]:
    """Name of the directory, whether it is kept in memory, and its size there. Raises Unsupported."""
    if volume.empty_dir is not None:
        limit = volume.empty_dir.size_limit
        memory = volume.empty_dir.medium == "Memory"
        if volume.empty_dir.medium not in ("", "Memory"):
            raise Unsupported(f"emptyDir medium {volume.empty_dir.medium!r} is not supported by podfit")
        return "empty-dir", memory, limit.value() if limit and memory else None
    if volume.secret is not None:
        return "secret", True, None
    for kind, source in (
        ("configmap", volume.config_map), ("downward-api", volume.downward_api), ("projected", volume.projected)):
        if source is not None:
            return kind, kind == "projected", None
    given = ", ".join(sorted(name for name in codec.to_dict(volume) if name != "name"))
    raise Unsupported(f"podfit cannot mount volumes of kind {given or 'none'}")


def _text(volume: Volume, problem: str) -> str:
    return f'MountVolume.SetUp failed for volume "{volume.name}" : {problem}'
