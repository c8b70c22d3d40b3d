"""Claims and volumes that are asked to go stay until nobody uses them, and then they go: a controller for each kind.

The API server gives each a finalizer when it is made; this controller takes it away from one that is being deleted,
once no pod that still runs mounts the claim, or no claim is bound to the volume.
"""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.claims import PersistentVolumeClaim
from podfit.api.core.persistent import PersistentVolume
from podfit.api.core.pods import Pod
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.volumes import PROTECTION, claim_in_use, claims_of, volume_in_use

LOOK_AGAIN = 2.0  # seconds, while somebody uses it: rare, so the pods are asked for, not watched

Key = tuple[str, str]  # namespace, name


class VolumeProtection(Controller[Key]):
    def __init__(
        self, client: Client, kind: type[PersistentVolumeClaim] | type[PersistentVolume], *, clock: Clock
    ) -> None:
        self._client = client
        self._finalizer = PROTECTION[kind]
        self._objects: Informer[Any] = Informer(client, kind, clock=clock)
        super().__init__(clock, self._objects)
        self._objects.add_handler(add=self._seen, update=lambda _, new: self._seen(new))

    def _seen(self, obj: Any) -> None:
        meta = obj.metadata
        if meta.deletion_timestamp and self._finalizer in meta.finalizers:
            self.queue.add((meta.namespace, meta.name))

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        found: Any = self._objects.get(name, namespace)
        if found is None or not found.metadata.deletion_timestamp:
            return None
        if await self._in_use(found):
            return LOOK_AGAIN
        kept = tuple(each for each in found.metadata.finalizers if each != self._finalizer)
        try:
            await self._client.update(replace(found, metadata=replace(found.metadata, finalizers=kept)))
        except ApiError as error:
            if error.code != 404:
                raise
        return None

    async def _in_use(self, obj: Any) -> bool:
        if isinstance(obj, PersistentVolume):
            return volume_in_use(obj)
        pods = (await self._client.list(Pod, obj.metadata.namespace)).items
        return claim_in_use(obj, (pod for pod in pods if claims_of(pod)))
