"""Claims and volumes that are asked to go stay until nobody uses them, and then they go.

The API server gives each a finalizer when it is made; this controller takes it away from one that is being deleted,
once no pod that still runs mounts the claim, or no claim is bound to the volume.
"""

from typing import Any

from podfit.api.base import Object
from podfit.api.core.claims import PersistentVolumeClaim
from podfit.api.core.persistent import PersistentVolume
from podfit.api.core.pods import Pod
from podfit.client.informer import Informer
from podfit.client.rest import MERGE_PATCH, Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.volumes import PROTECTION, claim_in_use, claims_of, volume_in_use

LOOK_AGAIN = 2.0  # seconds, while somebody uses it: rare, so the pods are asked for, not watched

Key = tuple[type[Object], str, str]  # kind, namespace, name


class VolumeProtection(Controller[Key]):
    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._claims = Informer(client, PersistentVolumeClaim, clock=clock)
        self._volumes = Informer(client, PersistentVolume, clock=clock)
        super().__init__(clock, self._claims, self._volumes)
        self._claims.add_handler(add=self._seen, update=lambda _, new: self._seen(new))
        self._volumes.add_handler(add=self._seen, update=lambda _, new: self._seen(new))

    def _seen(self, obj: Any) -> None:
        meta = obj.metadata
        if meta.deletion_timestamp and PROTECTION[type(obj)] in meta.finalizers:
            self.queue.add((type(obj), meta.namespace, meta.name))

    async def reconcile(self, key: Key) -> float | None:
        kind, namespace, name = key
        found: Any = self._claims.get(name, namespace) if kind is PersistentVolumeClaim else self._volumes.get(name)
        if found is None or not found.metadata.deletion_timestamp:
            return None
        if await self._in_use(found):
            return LOOK_AGAIN
        kept = [each for each in found.metadata.finalizers if each != PROTECTION[kind]]
        version = found.metadata.resource_version
        change = {"metadata": {"finalizers": kept, "resourceVersion": version}}
        try:
            await self._client.patch(kind, name, namespace, change, content_type=MERGE_PATCH)
        except ApiError as error:
            if error.code != 404:
                raise
        return None

    async def _in_use(self, obj: Any) -> bool:
        if isinstance(obj, PersistentVolume):
            return volume_in_use(obj)
        pods = (await self._client.list(Pod, obj.metadata.namespace)).items
        return claim_in_use(obj, (pod for pod in pods if claims_of(pod)))
