"""The volume binding controller: claims get an existing volume that fits, or a provisioned one.

A claim whose class waits for its first pod is left alone until the scheduler has said on it which node that pod gets.
A volume whose claim is gone is released; what becomes of it then is its reclaim policy's, and the provisioner's.
"""

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume, class_of
from podfit.api.storage.v1.types import StorageClass
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.controllers.pod_control import NOT_FOUND, WARNING
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.placement.volumes import SELECTED_NODE, is_bound, is_for
from podfit.decide.workload.unbound_claims import Binds, Waits, unbound
from podfit.decide.workload.volume_binding import bind, bound_claim

COMPONENT = "persistentvolume-controller"
AGAIN = 15.0
"""Seconds until a claim without a volume is looked at, and told of, again; what happens in between watches tell."""


class ClaimKey(msgspec.Struct, frozen=True):
    namespace: str
    name: str


class VolumeKey(msgspec.Struct, frozen=True):
    name: str


BindingKey: TypeAlias = ClaimKey | VolumeKey


class VolumeBindingController(Controller[BindingKey]):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._clock, self._recorder = client, clock, recorder
        self._claims, self._volumes = informers.of(PersistentVolumeClaim), informers.of(PersistentVolume)
        self._classes, self._nodes = informers.of(StorageClass), informers.of(Node)
        super().__init__(clock, self._claims, self._volumes, self._classes, self._nodes)
        self._claims.add_handler(
            add=self._claim_seen, update=lambda _, new: self._claim_seen(new), delete=self._claim_gone
        )
        self._volumes.add_handler(
            add=self._volume_seen, update=lambda _, new: self._volume_seen(new), delete=self._volume_gone
        )

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        self.queue.add(ClaimKey(claim.metadata.namespace, claim.metadata.name))

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        if claim.spec.volume_name:
            self.queue.add(VolumeKey(claim.spec.volume_name))

    def _volume_seen(self, volume: PersistentVolume) -> None:
        self.queue.add(VolumeKey(volume.metadata.name))

    def _volume_gone(self, volume: PersistentVolume) -> None:
        if (ref := volume.spec.claim_ref) is not None:
            self.queue.add(ClaimKey(ref.namespace, ref.name))

    async def reconcile(self, key: BindingKey) -> float | None:
        if isinstance(key, VolumeKey):
            volume = self._volumes.get(key.name)
            return await self._volume(volume) if volume is not None else None
        claim = self._claims.get(key.name, key.namespace)
        if claim is None or claim.metadata.deletion_timestamp:
            return None
        return await (self._bound(claim) if is_bound(claim) else self._unbound(claim))

    # ------------------------------------------------------------------ claims

    async def _bound(self, claim: PersistentVolumeClaim) -> float | None:
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is None or not is_for(volume, claim):  # the copy may be a moment behind
            volume = await self._live(claim.spec.volume_name)
        if volume is None or not is_for(volume, claim):
            if claim.status.phase != "Lost":
                text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                self._recorder.event(claim, WARNING, "ClaimLost", text)
                await self._client.update_status(
                    replace(claim, status=replace(claim.status, phase="Lost", capacity={}))
                )
            return None
        wanted = bound_claim(claim, volume)
        if wanted.status != claim.status:
            await self._client.update_status(wanted)
        return None

    async def _live(self, volume: str) -> PersistentVolume | None:
        try:
            return await self._client.get(PersistentVolume, volume)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            return None

    async def _unbound(self, claim: PersistentVolumeClaim) -> float | None:
        selected = claim.metadata.annotations.get(SELECTED_NODE, "")
        node = self._nodes.get(selected) if selected else None
        match unbound(claim, self._volumes.list(), self._classes.get(class_of(claim)), node):
            case Binds(volume):
                await self._bind(claim, volume)
                return None
            case Waits(told, ask):
                if told is not None:
                    self._recorder.event(claim, told.type, told.reason, told.message)
                if ask is not None:
                    await self._client.update(ask)
                return AGAIN

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """The volume first: whoever reads only one of them must not take it for free."""
        made = bind(claim, volume)
        if made.volume is not None:
            volume = await self._client.update(made.volume)
        if volume.status.phase != "Bound":
            volume = await self._say(volume, "Bound")
        if made.claim is not None:
            claim = await self._client.update(made.claim)
        await self._client.update_status(bound_claim(claim, volume))

    # ------------------------------------------------------------------ volumes

    async def _volume(self, volume: PersistentVolume) -> float | None:
        ref, phase = volume.spec.claim_ref, volume.status.phase
        if ref is None or not ref.uid:
            if phase in ("", "Pending"):
                await self._say(volume, "Available")
            if ref is not None:
                self.queue.add(ClaimKey(ref.namespace, ref.name))
            elif phase == "Available":
                self._offer(volume)
            return None
        claim = self._claims.get(ref.name, ref.namespace)
        if claim is None or claim.metadata.uid != ref.uid:
            if phase in ("Bound", "", "Available", "Pending") and await self._is_gone(ref.namespace, ref.name, ref.uid):
                await self._say(volume, "Released")
            return None
        self.queue.add(ClaimKey(ref.namespace, ref.name))
        if claim.spec.volume_name == volume.metadata.name and phase != "Bound":
            await self._say(volume, "Bound")
        return None

    def _offer(self, volume: PersistentVolume) -> None:
        """To the claims that wait for one like it."""
        for claim in self._claims.list():
            if not is_bound(claim) and class_of(claim) == volume.spec.storage_class_name:
                self._claim_seen(claim)

    async def _is_gone(self, namespace: str, name: str, uid: str) -> bool:
        try:
            return (await self._client.get(PersistentVolumeClaim, name, namespace)).metadata.uid != uid
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            return True

    async def _say(self, volume: PersistentVolume, phase: str) -> PersistentVolume:
        status = replace(volume.status, phase=phase, last_phase_transition_time=format_time(self._clock.now()))
        return await self._client.update_status(replace(volume, status=status))
