"""Volumes that are images: pulled before the container that mounts them starts, mounted by the runtime.

containerd has them since 2.1 and CRI-O since 1.31; an older one would take the mount for one without a source, so the
container is refused by name there. A runtime of another name is believed to have them.
"""

import re
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.pod.pull_credentials import Credential
from podfit.kubelet.images.puller import Puller, Tell
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import Version
from podfit.kubelet.sources.downward import Unsupported

_SINCE = {"containerd": (2, 1), "cri-o": (1, 31)}
_NUMBERS = re.compile(r"v?(\d+)\.(\d+)")


class ImageVolumes(msgspec.Struct, frozen=True):
    runtime: Runtime
    puller: Puller

    async def pulled(
        self, pod: Pod, container: Container, tell: Tell, find: Callable[[str], Awaitable[tuple[Credential, ...]]]
    ) -> Mapping[str, str]:
        """The image of each such volume that the container mounts, by the volume's name, as the runtime knows it.
        `find` answers what a registry may be shown for an image. Raises ImageRefused, Unsupported, CRIError.
        """
        mounted = {mount.name for mount in container.volume_mounts}
        found: dict[str, str] = {}
        for volume in pod.spec.volumes:
            if volume.image is None or volume.name not in mounted:
                continue
            if not found and (problem := lacking(await self.runtime.version())):
                raise Unsupported(f'volume "{volume.name}": {problem}')
            reference, policy = volume.image.reference, volume.image.pull_policy
            wanted = replace(container, image=reference, image_pull_policy=policy)

            async def credentials(image: str = reference) -> tuple[Credential, ...]:
                return await find(image)

            found[volume.name] = await self.puller.ensure(labels.ref(pod), wanted, tell, credentials)
        return found


def lacking(version: Version) -> str:
    """Why a runtime has no image volumes; empty when it has."""
    since, numbers = _SINCE.get(version.runtime_name), _NUMBERS.match(version.runtime_version)
    if since is None or numbers is None or (int(numbers[1]), int(numbers[2])) >= since:
        return ""
    wanted = ".".join(map(str, since))
    return f"image volumes need {version.runtime_name} {wanted} or later, this node has {version.runtime_version}"
