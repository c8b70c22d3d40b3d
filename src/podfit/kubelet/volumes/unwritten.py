"""The volumes of a node without files, which is a simulated one: what they are made of is looked for, not written."""

from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import ServiceAccountTokenProjection, Volume
from podfit.kubelet.volumes.atomic import File
from podfit.kubelet.volumes.manager import Paths, Volumes


class NoTokens(msgspec.Struct, frozen=True):
    """Tokens are not asked for."""

    async def token(self, pod: Pod, wanted: ServiceAccountTokenProjection) -> str:
        return ""

    def forget(self, uid: str) -> None:
        """There is nothing to forget."""


class UnwrittenVolumes(Volumes, frozen=True):
    """A missing ConfigMap, Secret or claim keeps a pod waiting, as on a real node; the machine's own paths are not
    touched.
    """

    @property
    def refreshed(self) -> bool:
        return False

    async def mount(self, pod: Pod, *, again: bool = False) -> Paths:
        """What another pod needed a moment ago is there."""
        return await super().mount(pod, again=True)

    async def _on_host(self, path: Path, kind: str) -> Path:
        return path

    async def _write(
        self, pod: Pod, volume: Volume, path: Path, payload: dict[str, File] | None, group: int | None
    ) -> None:
        """Nothing."""

    async def _inside(self, pod: Pod, volume: Path, sub_path: str, place: tuple[str, ...]) -> Path:
        return volume
