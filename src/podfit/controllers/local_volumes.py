"""The provisioner `podfit.dev/local`: a directory on the node for each claim, gone with it where the policy is Delete.

It runs where the nodes are, in `podfit up`, because the directories are this machine's. How much is in one is not
bounded: the size of a claim is only said.
"""

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import (
    LocalVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
    class_of,
)
from podfit.api.core.v1.pods.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.storage.v1.columns import DEFAULT_CLASS, is_default
from podfit.api.storage.v1.types import StorageClass
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.placement.volumes import HOSTNAME, SELECTED_NODE, WAITS
from podfit.decide.workload.unbound_claims import is_asked
from podfit.decide.workload.volume_binding import STORAGE
from podfit.net.files import remove_tree

NAME, COMPONENT = "podfit.dev/local", "podfit.dev/local"
CLASS = "local"
BY = "pv.kubernetes.io/provisioned-by"
PREFIX = "pvc-"


class WaitingClaim(msgspec.Struct, frozen=True):
    """A claim that wants a directory."""

    namespace: str
    name: str


class Released(msgspec.Struct, frozen=True):
    """A volume that may have to go."""

    name: str


LocalKey: TypeAlias = WaitingClaim | Released


class LocalVolumes(Controller[LocalKey]):
    """`root` holds the directories of the nodes `nodes`."""

    def __init__(
        self,
        client: Client,
        *,
        informers: Informers,
        recorder: EventRecorder,
        clock: Clock,
        root: Path,
        nodes: Collection[str],
    ) -> None:
        self._client, self._recorder, self._root, self._nodes = client, recorder, root, nodes
        self._claims, self._volumes = informers.of(PersistentVolumeClaim), informers.of(PersistentVolume)
        self._classes = informers.of(StorageClass)
        super().__init__(clock, self._claims, self._volumes, self._classes)
        self._claims.add_handler(add=self._claim_seen, update=lambda _, new: self._claim_seen(new))
        self._classes.add_handler(add=self._class_seen)
        self._volumes.add_handler(add=self._volume_seen, update=lambda _, new: self._volume_seen(new))

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        if is_asked(NAME, claim, self._classes.get(class_of(claim))):
            self.queue.add(WaitingClaim(claim.metadata.namespace, claim.metadata.name))

    def _class_seen(self, storage: StorageClass) -> None:
        """A claim may have been there before its class."""
        for claim in self._claims.list():
            if is_asked(NAME, claim, storage) and class_of(claim) == storage.metadata.name:
                self._claim_seen(claim)

    def _volume_seen(self, volume: PersistentVolume) -> None:
        if volume.status.phase == "Released" and volume.metadata.annotations.get(BY) == NAME:
            self.queue.add(Released(volume.metadata.name))

    async def reconcile(self, key: LocalKey) -> float | None:
        if isinstance(key, Released):
            volume = self._volumes.get(key.name)
            if volume is not None and volume.spec.persistent_volume_reclaim_policy == "Delete":
                await self._delete(volume)
            return None
        claim = self._claims.get(key.name, key.namespace)
        storage = self._classes.get(class_of(claim)) if claim is not None else None
        if claim is not None and storage is not None and is_asked(NAME, claim, storage):
            await self._provide(claim, storage)
        return None

    async def _provide(self, claim: PersistentVolumeClaim, storage: StorageClass) -> None:
        node = claim.metadata.annotations[SELECTED_NODE]
        if node not in self._nodes or claim.spec.volume_mode == "Block":
            why = "has no such directories" if node not in self._nodes else "gives directories, not block devices"
            self._recorder.event(claim, WARNING, "ProvisioningFailed", f"node {node} {why}: {NAME} cannot provide it")
            annotations = {key: value for key, value in claim.metadata.annotations.items() if key != SELECTED_NODE}
            await self._client.update(replace(claim, metadata=replace(claim.metadata, annotations=annotations)))
            return
        name = PREFIX + claim.metadata.uid
        path = self._root / name
        await asyncio.to_thread(_make, path)
        try:
            await self._client.create(_volume(claim, storage, name, path, node))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        self._recorder.event(claim, NORMAL, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    async def _delete(self, volume: PersistentVolume) -> None:
        """Deletes it by its name, whatever path it tells."""
        name = volume.metadata.name
        try:
            await asyncio.to_thread(_remove, self._root / name)
        except OSError as error:
            self._recorder.event(volume, WARNING, "VolumeFailedDelete", str(error))
            raise
        try:
            await self._client.delete(PersistentVolume, name, uid=volume.metadata.uid)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise


def _make(path: Path) -> None:
    """For a container of any user, as upstream's provisioners of directories make it."""
    path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    path.mkdir(exist_ok=True)
    path.chmod(0o777)


def _remove(path: Path) -> None:
    if path.name.startswith(PREFIX) and path.exists():
        remove_tree(path)


def _volume(claim: PersistentVolumeClaim, storage: StorageClass, name: str, path: Path, node: str) -> PersistentVolume:
    meta = claim.metadata
    here = NodeSelectorRequirement(key=HOSTNAME, operator="In", values=(node,))
    return PersistentVolume(
        metadata=ObjectMeta(name=name, annotations={BY: NAME}),
        spec=PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity={STORAGE: claim.spec.resources.requests[STORAGE]},
            claim_ref=ObjectReference(
                kind="PersistentVolumeClaim", api_version="v1", namespace=meta.namespace, name=meta.name, uid=meta.uid
            ),
            local=LocalVolumeSource(path=str(path)),
            node_affinity=VolumeNodeAffinity(
                required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(here,)),))
            ),
            persistent_volume_reclaim_policy=storage.reclaim_policy or "Delete",
            storage_class_name=storage.metadata.name,
            volume_mode="Filesystem",
        ),
    )


async def keep_class(client: Client) -> None:
    """Make the class `local` where there is none of that name; the default one if no other is."""
    found = (await client.list(StorageClass)).items
    if any(storage_class.metadata.name == CLASS for storage_class in found):
        return
    default = {} if any(map(is_default, found)) else {DEFAULT_CLASS: "true"}
    made = StorageClass(
        metadata=ObjectMeta(name=CLASS, annotations=default),
        provisioner=NAME,
        reclaim_policy="Delete",
        volume_binding_mode=WAITS,
    )
    try:
        await client.create(made)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
