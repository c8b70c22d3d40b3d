"""Persistent volumes: a bound claim leads to a volume, and that to a directory of this machine."""

import asyncio
from pathlib import Path

import msgspec

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.decide.placement.volumes import is_bound
from podfit.decide.pod.volume_claims import ephemeral_claims, not_its_own
from podfit.kubelet.sources.downward import Unsupported
from podfit.kubelet.sources.lookup import Missing
from podfit.kubelet.volumes.host_path import prepare


class ClaimedVolume(msgspec.Struct, frozen=True):
    """`shared`: a directory of the machine that others use as well (hostPath), whose files belong to whom they do."""

    path: Path
    shared: bool


class ClaimedVolumes(msgspec.Struct, frozen=True):
    """`client` is the node's: it may read the claims of its pods, and their volumes. `host_paths`: whether the path of
    a volume of kind hostPath is checked, and made where its type says so."""

    client: Client
    host_paths: bool = True

    async def find(self, pod: Pod, name: str) -> ClaimedVolume:
        """The volume of the claim. Raises Missing, Unsupported, ApiError, OSError."""
        claim = await self.client.get(PersistentVolumeClaim, name, pod.metadata.namespace)
        if problem := not_its_own(pod, claim, ephemeral_claims(pod)):
            raise Missing(problem)
        if not is_bound(claim):
            raise Missing(f'persistentvolumeclaim "{name}" is not bound')
        volume = await self.client.get(PersistentVolume, claim.spec.volume_name)
        ref = volume.spec.claim_ref
        if ref is None or ref.uid != claim.metadata.uid:
            raise Missing(f'persistentvolume "{volume.metadata.name}" is not the claim\'s')
        return ClaimedVolume(
            await asyncio.to_thread(_place, volume, host_paths=self.host_paths), shared=volume.spec.local is None
        )


def _place(volume: PersistentVolume, *, host_paths: bool) -> Path:
    spec = volume.spec
    if spec.volume_mode == "Block":
        raise Unsupported("podfit cannot map block volumes")
    if spec.local is not None:
        path = Path(spec.local.path)
        if not path.is_dir():
            raise Missing(f'path "{path}" of local volume "{volume.metadata.name}" is not a directory')
        return path
    if spec.host_path is not None:
        path = Path(spec.host_path.path)
        if host_paths and (problem := prepare(path, spec.host_path.type or "")):
            raise Missing(problem)
        return path
    given = codec.to_dict(spec).keys() - {"accessModes", "capacity", "claimRef", "nodeAffinity", "volumeMode"}
    kinds = sorted(given - {"persistentVolumeReclaimPolicy", "storageClassName", "mountOptions"})
    raise Unsupported(f"podfit cannot mount persistent volumes of kind {', '.join(kinds) or 'none'}")
