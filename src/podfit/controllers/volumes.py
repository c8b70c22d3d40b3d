"""Claims and volumes that are asked to go stay until nobody uses them, and then they go: a controller for each kind.

The API server gives each a finalizer when it is made; this controller takes it away from one that is being deleted,
once no pod that still runs mounts the claim, or no claim is bound to the volume. A volume says itself that it is not
bound any more. Claims that are being deleted while pods mount them are rare, so pods are followed only while there is
such a claim, in its namespace.
"""

import asyncio
import logging
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.placement.volumes import PROTECTION, claim_in_use, volume_in_use
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

FOLLOW_AGAIN = 2.0  # seconds, when the watch of pods could not be had

Key = tuple[str, str]  # namespace, name


class VolumeProtection(Controller[Key]):
    def __init__(
        self, client: Client, kind: type[PersistentVolumeClaim] | type[PersistentVolume], *, clock: Clock
    ) -> None:
        self._client, self._clock = client, clock
        self._finalizer = PROTECTION[kind]
        self._objects: Informer[Any] = Informer(client, kind, clock=clock)
        self._supervisor = Supervisor("users of claims")
        self._following: dict[Key, asyncio.Task[None]] = {}
        super().__init__(clock, self._objects)
        self._objects.add_handler(
            add=self._seen, update=lambda _, new: self._seen(new), delete=lambda old: self._leave(_key(old))
        )

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._supervisor.failure())
                await super().run()
        finally:
            await self._supervisor.stop()

    def _seen(self, obj: Any) -> None:
        meta = obj.metadata
        if meta.deletion_timestamp and self._finalizer in meta.finalizers:
            self.queue.add(_key(obj))

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        found: Any = self._objects.get(name, namespace)
        if found is None or not found.metadata.deletion_timestamp:
            return None
        if await self._in_use(found):
            return None
        kept = tuple(each for each in found.metadata.finalizers if each != self._finalizer)
        try:
            await self._client.update(replace(found, metadata=replace(found.metadata, finalizers=kept)))
        except ApiError as error:
            if error.code != 404:
                raise
        return None

    async def _in_use(self, obj: Any) -> bool:
        """Whether it is; if so, there will be another look when it is not any more."""
        if isinstance(obj, PersistentVolume):
            return volume_in_use(obj)
        pods = await self._client.list(Pod, obj.metadata.namespace)
        users = {each.metadata.uid for each in pods.items if claim_in_use(obj, (each,))}
        self._leave(_key(obj))
        if users:
            following = self._follow(obj, users, pods.resource_version)
            self._following[_key(obj)] = self._supervisor.begin(following, name=f"users of {obj.metadata.name}")
        return bool(users)

    async def _follow(self, claim: PersistentVolumeClaim, users: set[str], version: str) -> None:
        """Look again when these pods have ended or gone."""
        key = _key(claim)
        try:
            events = self._client.watch(Pod, claim.metadata.namespace, resource_version=version, bookmarks=False)
            async with aclosing(events):
                async for event in events:
                    if event.type == "DELETED" or not claim_in_use(claim, (event.object,)):
                        users.discard(event.object.metadata.uid)
                    if not users:
                        break
        except (ApiError, ConnectionError) as error:
            log.warning("cannot follow the users of a claim claim=%s/%s error=%s", *key, error)
            self.queue.add_after(key, FOLLOW_AGAIN)
            return
        self.queue.add(key)  # also when the server ended the watch

    def _leave(self, key: Key) -> None:
        if (task := self._following.pop(key, None)) is not None:
            task.cancel()


def _key(obj: Any) -> Key:
    return obj.metadata.namespace, obj.metadata.name
