"""The protection controllers of claims and volumes: finalizers stay until nobody uses them.

The API server gives each a finalizer when it is made; this controller takes it away from one that is being deleted,
once no pod that still runs mounts the claim, or no claim is bound to the volume. A volume says itself that it is not
bound any more. The copies may be behind: that a claim has no users is asked of the API server before it goes.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.placement.volumes import PROTECTION, claim_in_use, claims_of, volume_in_use
from podfit.net.loop_turns import beside

_BY_CLAIM = "claims that a pod mounts"


class VolumeProtection(Controller[Key]):
    def __init__(
        self,
        client: Client,
        kind: type[PersistentVolumeClaim] | type[PersistentVolume],
        *,
        informers: Informers,
        clock: Clock,
    ) -> None:
        self._client, self._kind = client, kind
        self._finalizer = PROTECTION[kind]
        self._objects: Informer[PersistentVolumeClaim | PersistentVolume] = informers.of(kind)
        self._pods = informers.of(Pod)
        super().__init__(clock, self._objects, self._pods)
        self._objects.add_handler(add=self._seen, update=lambda _, new: self._seen(new))
        if kind is PersistentVolumeClaim:
            self._pods.add_index(_BY_CLAIM, _claims)
            self._pods.add_handler(update=lambda _, new: self._pod_changed(new), delete=self._pod_changed)

    def _seen(self, obj: Object) -> None:
        meta = obj.metadata
        if meta.deletion_timestamp and self._finalizer in meta.finalizers:
            self.queue.add(key_of(obj))

    def _pod_changed(self, pod: Pod) -> None:
        for name in claims_of(pod):
            if (claim := self._objects.get(name, pod.metadata.namespace)) is not None:
                self._seen(claim)

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        found = self._objects.get(name, namespace)
        if found is None or not found.metadata.deletion_timestamp:
            return None
        if await self._in_use(found):
            return None
        kept = tuple(finalizer for finalizer in found.metadata.finalizers if finalizer != self._finalizer)
        try:
            await self._client.update(replace(found, metadata=replace(found.metadata, finalizers=kept)))
        except ApiError as error:
            if error.code != 404:
                raise
        return None

    async def _in_use(self, obj: PersistentVolumeClaim | PersistentVolume) -> bool:
        """Whether it is; if so, there will be another look when a pod ends or goes."""
        if isinstance(obj, PersistentVolume):
            return volume_in_use(obj)
        meta = obj.metadata
        known = self._pods.by_index(_BY_CLAIM, f"{meta.namespace}/{meta.name}")
        return await _mounted(obj, known) or await _mounted(obj, (await self._client.list(Pod, meta.namespace)).items)


async def _mounted(claim: PersistentVolumeClaim, pods: Sequence[Pod]) -> bool:
    return await beside(sum(1 + len(pod.spec.volumes) for pod in pods), claim_in_use, claim, pods)


def _claims(pod: Pod) -> Iterable[str]:
    return [f"{pod.metadata.namespace}/{name}" for name in claims_of(pod)]
