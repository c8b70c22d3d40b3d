"""Deleting a namespace means emptying it first.

A namespace that is being deleted keeps its `kubernetes` finalizer until nothing is left in it, of any kind that the
server has by then, custom resources included. Pods go gracefully, so the controller looks again until they are gone;
then it takes the finalizer away and the API server removes the object.
"""

import msgspec

from podfit.api.core.namespaces import Namespace
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.controllers.garbage.graph import Marked
from podfit.controllers.served import Served, served
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

FINALIZER = "kubernetes"
LOOK_AGAIN = 0.5  # seconds, while something in it takes its time to go
ASK_AGAIN = 15.0  # seconds, while a component that serves kinds does not answer


class NamespaceController(Controller[str]):
    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._namespaces = Informer(client, Namespace, clock=clock)
        super().__init__(clock, self._namespaces)
        self._namespaces.add_handler(add=self._seen, update=lambda _, new: self._seen(new))

    def _seen(self, namespace: Namespace) -> None:
        if namespace.metadata.deletion_timestamp:
            self.queue.add(namespace.metadata.name)

    async def reconcile(self, key: str) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            return None
        inventory = await served(self._client, "delete", "list")
        left = [await self._empty(each, key) for each in inventory.kinds if each.namespaced]
        if any(left):
            return LOOK_AGAIN
        if inventory.silent:  # who serves them may have something in it
            return ASK_AGAIN
        await self._finalize(namespace)
        return None

    async def _empty(self, kind: Served, namespace: str) -> bool:
        """Ask for everything of one kind to go; True while something is still there."""
        objects = kind.decoded_as(Marked)
        found = (await self._client.list(objects, namespace, limit=500)).items
        for obj in found:
            meta = obj.metadata
            if meta.deletion_timestamp and (meta.finalizers or meta.deletion_grace_period_seconds):
                continue
            try:
                await self._client.delete(objects, meta.name, namespace, uid=meta.uid)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
        return bool(found)

    async def _finalize(self, namespace: Namespace) -> None:
        kept = tuple(name for name in namespace.spec.finalizers if name != FINALIZER)
        emptied = msgspec.structs.replace(namespace, spec=msgspec.structs.replace(namespace.spec, finalizers=kept))
        try:
            await self._client.update(emptied, subresource="finalize")
        except ApiError as error:
            if error.code != 404:
                raise
