"""The volumes of the pods on this node: made before the containers, refreshed once a minute, removed with the pod.

    <root>/pods/<uid>/volumes/kubernetes.io~<kind>/<name>
    <root>/pods/<uid>/volume-subpaths/…      see sub_paths

A source that podfit cannot mount is refused by name. Everything can be repeated: what is there already is kept.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.containers import Container, VolumeMount
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta import codec
from podfit.core.errors import ApiError
from podfit.decide.pod.environment import PATH_BYTES, expand_within
from podfit.decide.pod.volume_claims import claim_of
from podfit.kubelet.disk.mounter import Mounter
from podfit.kubelet.disk.safe_paths import Outside, component, make_directory
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.runtime.configs import Mount, Propagation
from podfit.kubelet.sources.downward import Unsupported
from podfit.kubelet.sources.lookup import Missing
from podfit.kubelet.volumes.atomic import File, write_payload
from podfit.kubelet.volumes.claimed import ClaimedVolumes
from podfit.kubelet.volumes.groups import give_all_to_group, give_to_group, of_group
from podfit.kubelet.volumes.host_path import prepare
from podfit.kubelet.volumes.payloads import Allowance, Payloads
from podfit.kubelet.volumes.sub_paths import DIRECTORY, bind, remove_tree

_PROPAGATION: Mapping[str, Propagation] = {"HostToContainer": "host-to-container", "Bidirectional": "bidirectional"}

POD_BYTES, POD_FILES = 128 << 20, 20_000  # of all volumes whose files the kubelet writes
MOST_MOUNTS = 1000  # of one container
HOSTS_FILE, HOSTNAME_FILE, MESSAGES = "etc-hosts", "etc-hostname", "containers"
"""In a pod's directory: its /etc/hosts and /etc/hostname, and a directory for each container's termination messages."""
BREATH = 16  # mounts between two turns of the event loop

Paths = Mapping[str, Path]
"""Where each volume is on the host, by its name."""


class MountError(Exception):
    """A volume that is not there yet; the text is that of the FailedMount event."""


class Volumes(msgspec.Struct, frozen=True):
    root: Path
    payloads: Payloads
    mounter: Mounter
    writer: DiskWriter
    now: Callable[[], datetime]
    claimed: ClaimedVolumes

    @property
    def refreshed(self) -> bool:
        """Whether what was mounted is brought up to date."""
        return True

    async def mount(self, pod: Pod, *, again: bool = False) -> Paths:
        """Make every volume, or refresh it. Raises MountError for the first that cannot be had."""
        paths, room = {}, Allowance(POD_BYTES, POD_FILES, "volumes of the pod")
        for volume in pod.spec.volumes:
            if volume.image is None:  # those are the runtime's to mount
                paths[volume.name] = await self._mount(pod, volume, room, again=again)
            await asyncio.sleep(0)
        return paths

    async def remove(self, uid: str) -> None:
        """Unmount and delete everything of a pod, messages of its containers too. Raises OSError."""
        self.payloads.tokens.forget(uid)
        home = self.pod_directory(uid)
        if home.exists():
            await self.writer.run(home, partial(remove_tree, home, self.mounter))

    def pod_directory(self, uid: str) -> Path:
        return self.root / "pods" / component(uid)

    def volume_directory(self, uid: str, volume: Volume) -> Path:
        """The directory of a volume that the kubelet makes. Raises Unsupported for another."""
        kind, _, _ = _kind(volume)
        return self.pod_directory(uid) / "volumes" / f"kubernetes.io~{kind}" / component(volume.name)

    def make_directory(self, uid: str, *names: str) -> Path:
        """A directory below the pod's. Only root may enter the pod's own. Raises Outside, OSError."""
        below = "/".join((component(uid), *(component(name) for name in names)))
        (self.root / "pods").mkdir(mode=0o750, parents=True, exist_ok=True)
        return make_directory(self.root / "pods", below, mode=0o750)

    def known(self) -> set[str]:
        """The pods that have a directory, wanted or orphaned."""
        try:
            return {path.name for path in (self.root / "pods").iterdir()}
        except FileNotFoundError:
            return set()

    async def _mount(self, pod: Pod, volume: Volume, room: Allowance, *, again: bool) -> Path:
        try:
            if volume.host_path is not None:
                return await self._on_host(Path(volume.host_path.path), volume.host_path.type or "")
            if claim := claim_of(volume, pod):
                return await self._claimed(pod, claim, again=again)
            return await self._in_pod_directory(pod, volume, room, again=again)
        except (Missing, Unsupported, Outside, ApiError, OSError) as error:
            raise MountError(_text(volume, str(error))) from error

    async def _on_host(self, path: Path, kind: str) -> Path:
        if kind and (problem := await self.writer.run(path, partial(prepare, path, kind))):
            raise Missing(problem)
        return path

    async def _claimed(self, pod: Pod, claim: str, *, again: bool) -> Path:
        """A large volume takes long to be given to a group, so that has no limit of time."""
        volume, context = await self.claimed.find(pod, claim), pod.spec.security_context
        if context is not None and context.fs_group is not None and not again and not volume.shared:
            policy = context.fs_group_change_policy or "Always"
            give = partial(give_all_to_group, volume.path, context.fs_group, policy, own=self.mounter.own)
            await asyncio.to_thread(give)
        return volume.path

    async def _in_pod_directory(self, pod: Pod, volume: Volume, room: Allowance, *, again: bool) -> Path:
        payload = await self.payloads.of(pod, volume, recent=again)
        group = pod.spec.security_context.fs_group if pod.spec.security_context else None
        if payload is not None and group is not None:
            payload = {name: of_group(file, group) for name, file in payload.items()}
        for file in payload.values() if payload is not None else ():
            room.take(file)
        path = self.volume_directory(pod.metadata.uid, volume)
        await self._write(pod, volume, path, payload, group)
        return path

    async def _write(
        self, pod: Pod, volume: Volume, path: Path, payload: dict[str, File] | None, group: int | None
    ) -> None:
        """Raises Outside, OSError."""
        kind, in_memory, size = _kind(volume)
        now = self.now()

        def make() -> None:
            new = not path.exists()
            if new:
                self.make_directory(pod.metadata.uid, "volumes", f"kubernetes.io~{kind}", volume.name)
            if in_memory:
                self.mounter.tmpfs(path, size=size)
            if new:
                path.chmod(0o777)
                if group is not None:
                    give_to_group(path, group, own=self.mounter.own)
            if payload is not None:
                write_payload(path, payload, now=now, own=self.mounter.own)

        await self.writer.run(path, make)

    async def container_mounts(
        self,
        pod: Pod,
        container: Container,
        paths: Paths,
        environment: Mapping[str, str],
        *,
        images: Mapping[str, str],
        recursive: bool,
    ) -> tuple[Mount, ...]:
        """What the runtime has to mount into one container; `images` are those of volumes that are images, by volume;
        `recursive`: it can make read-only all that is mounted below. Raises Unsupported for a sub-path that leaves its
        volume or what a runtime cannot do, TooLarge, OSError.
        """
        if len(container.volume_mounts) > MOST_MOUNTS:
            raise Unsupported(f"{len(container.volume_mounts)} volume mounts, podfit makes at most {MOST_MOUNTS}")
        read_only = {volume.name for volume in pod.spec.volumes if _is_read_only(volume)}
        mounts = []
        for number, mount in enumerate(container.volume_mounts):
            if mount.name in images:
                mounts.append(_of_image(mount, images[mount.name], environment))
                continue
            if mount.name not in paths:
                raise Unsupported(f'volume mount "{mount.name}" has no volume')
            place = mount.name, container.name, str(number)
            mounts.append(
                Mount(
                    container_path=mount.mount_path,
                    readonly=mount.read_only or mount.name in read_only,
                    recursive_read_only=_recursive_read_only(mount, recursive),
                    host_path=str(await self._source(pod, mount, paths[mount.name], environment, place)),
                    propagation=_PROPAGATION.get(mount.mount_propagation or "", "private"),
                )
            )
            if number % BREATH == 0:
                await asyncio.sleep(0)
        return tuple(mounts)

    async def _source(
        self, pod: Pod, mount: VolumeMount, volume: Path, environment: Mapping[str, str], place: tuple[str, ...]
    ) -> Path:
        sub_path = _sub_path(mount, environment)
        return await self._inside(pod, volume, sub_path, place) if sub_path else volume

    async def _inside(self, pod: Pod, volume: Path, sub_path: str, place: tuple[str, ...]) -> Path:
        """Raises Unsupported, OSError."""

        def make() -> Path:
            home = self.make_directory(pod.metadata.uid)
            return bind(volume, sub_path, home=home, place=place, mounter=self.mounter)

        return await self.writer.run(self.pod_directory(pod.metadata.uid).joinpath(DIRECTORY, *place), make)


def _is_read_only(volume: Volume) -> bool:
    """What the kubelet writes and brings up to date is not for containers to change, whatever their mount says."""
    sources = volume.config_map, volume.secret, volume.downward_api, volume.projected
    claim = volume.persistent_volume_claim
    return any(source is not None for source in sources) or (claim is not None and claim.read_only)


def _of_image(mount: VolumeMount, image: str, environment: Mapping[str, str]) -> Mount:
    """Always read-only."""
    return Mount(
        container_path=mount.mount_path, image=image, image_sub_path=_sub_path(mount, environment), readonly=True
    )


def asks_for_recursive(container: Container) -> bool:
    """Whether a mount of it is to be read-only with all below it."""
    return any(mount.recursive_read_only in ("Enabled", "IfPossible") for mount in container.volume_mounts)


def _recursive_read_only(mount: VolumeMount, supported: bool) -> bool:
    """Raises Unsupported, in upstream's words."""
    if mount.recursive_read_only == "Enabled" and not supported:
        raise Unsupported(
            f'failed to resolve recursive read-only mode: volume "{mount.name}" requested recursive read-only mode, '
            "but it is not supported by the runtime"
        )
    return supported and mount.recursive_read_only in ("Enabled", "IfPossible")


def _sub_path(mount: VolumeMount, environment: Mapping[str, str]) -> str:
    if not mount.sub_path_expr:
        return mount.sub_path
    what = f"subPathExpr of volume mount {mount.name}"
    return expand_within(what, mount.sub_path_expr, environment, limit=PATH_BYTES)


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
        ("configmap", volume.config_map),
        ("downward-api", volume.downward_api),
        ("projected", volume.projected),
    ):
        if source is not None:
            return kind, kind == "projected", None
    given = ", ".join(sorted(name for name in codec.to_dict(volume) if name != "name"))
    raise Unsupported(f"podfit cannot mount volumes of kind {given or 'none'}")


def _text(volume: Volume, problem: str) -> str:
    return f'MountVolume.SetUp failed for volume "{volume.name}" : {problem}'
